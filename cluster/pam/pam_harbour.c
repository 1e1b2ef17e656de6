/* pam_harbour.so: two second factors in the words of the centres that have them.
 *
 *   auth required  /harbour/lib/pam_harbour.so duo   talks as pam_duo does: a menu as one prompt, three tries in one go
 *   auth requisite /harbour/lib/pam_harbour.so oath  asks as pam_oath does, but takes a code more than once
 *
 * /harbour/keys has what is right, as NAME.duo and NAME.totp. A push waits as a file NAME.PID.waiting in
 * /harbour/run/push until somebody writes the line "approve" or "deny" into it. The file is locked while its maker
 * lives, which tells a push that waits from one whose login was killed.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <liboath/oath.h>
#include <security/pam_ext.h>
#include <security/pam_modules.h>

enum { DUO_TRIES = 3, PUSH_SECONDS = 30 };

/* The first line of a file in /harbour/keys. The name comes from the network. */
static int secret_of(const char *user, const char *kind, char *line, int size)
{
    char path[300];
    if (strpbrk(user, "/.") || snprintf(path, sizeof path, "/harbour/keys/%s.%s", user, kind) >= (int)sizeof path)
        return 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    char *found = fgets(line, size, file);
    fclose(file);
    if (found)
        line[strcspn(line, "\n")] = '\0';
    return found && *line;
}

/* What the phone said: 'a'pproved, 'd'enied, or 0 for no answer in time. */
static char wait_for_push(const char *user)
{
    char draft[300], path[300], answer[16];
    if (snprintf(path, sizeof path, "/harbour/run/push/%s.%d.waiting", user, (int)getpid()) >= (int)sizeof path ||
        snprintf(draft, sizeof draft, "%s.new", path) >= (int)sizeof draft)
        return 0;
    int file = open(draft, O_CREAT | O_TRUNC | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0)
        return 0;
    ssize_t length = 0;
    /* renamed only when locked, so that nobody sees one that looks dead */
    if (flock(file, LOCK_EX | LOCK_NB) == 0 && rename(draft, path) == 0) {
        for (int tenth = 0; tenth < PUSH_SECONDS * 10; tenth++) {
            poll(NULL, 0, 100);
            length = pread(file, answer, sizeof answer, 0);
            if (length > 0 && answer[length - 1] == '\n')
                break;
        }
        unlink(path);
    }
    close(file);
    return length > 0 ? answer[0] : 0;
}

/* sshd keeps what pam_info says until the next prompt, or until the end: it has no other way to send it. */
static int duo(pam_handle_t *pam, const char *user)
{
    char right[64];
    int known = secret_of(user, "duo", right, sizeof right);
    for (int try = 0; try < DUO_TRIES; try++) {
        char *answer = NULL;
        if (pam_prompt(pam, PAM_PROMPT_ECHO_ON, &answer,
                       "Duo two-factor login for %s\n\n"
                       "Enter a passcode or select one of the following options:\n\n"
                       " 1. Duo Push to My phone (iOS)\n"
                       " 2. Phone call to XXX-XXX-0142\n\n"
                       "Passcode or option (1-2): ", user) != PAM_SUCCESS || !answer)
            return PAM_ABORT;
        char choice = answer[0] && !answer[1] ? answer[0] : 0;
        int good = known && strcmp(answer, right) == 0;
        free(answer);
        if (known && choice == '1') {
            pam_info(pam, "Pushed a login request to your device...");
            char said = wait_for_push(user);
            good = said == 'a';
            if (!good)
                pam_info(pam, "%s\n", said == 'd' ? "Login request denied." : "Login timed out.");
        } else if (known && choice == '2') {
            pam_info(pam, "Dialing XXX-XXX-0142...");
            sleep(1);
            pam_info(pam, "The call was not answered.\n");
        } else if (!good) {
            pam_info(pam, "Incorrect passcode. Please try again.\n");
        }
        if (good) {
            pam_info(pam, "Success. Logging you in...");
            return PAM_SUCCESS;
        }
    }
    return PAM_MAXTRIES;
}

static int oath(pam_handle_t *pam, const char *user)
{
    char base32[128], *answer = NULL, *secret = NULL;
    size_t length = 0;
    int right = 0;
    if (pam_prompt(pam, PAM_PROMPT_ECHO_OFF, &answer, "One-time password (OATH) for `%s': ", user) != PAM_SUCCESS || !answer)
        return PAM_ABORT;
    if (secret_of(user, "totp", base32, sizeof base32) && oath_init() == OATH_OK &&
        oath_base32_decode(base32, strlen(base32), &secret, &length) == OATH_OK)
        right = strlen(answer) == 6 && oath_totp_validate(secret, length, time(NULL), 30, 0, 1, answer) >= 0;
    free(secret);
    free(answer);
    return right ? PAM_SUCCESS : PAM_AUTH_ERR;
}

int pam_sm_authenticate(pam_handle_t *pam, int flags, int argc, const char **argv)
{
    const char *user;
    (void)flags;
    if (argc != 1 || pam_get_user(pam, &user, NULL) != PAM_SUCCESS)
        return PAM_SERVICE_ERR;
    return strcmp(argv[0], "duo") == 0 ? duo(pam, user) : strcmp(argv[0], "oath") == 0 ? oath(pam, user) : PAM_SERVICE_ERR;
}

int pam_sm_setcred(pam_handle_t *pam, int flags, int argc, const char **argv)
{
    (void)pam, (void)flags, (void)argc, (void)argv;
    return PAM_SUCCESS;
}
