//! Ssh servers of a test's own, on the cluster's login host with its people and its Slurm: they may ask anything,
//! refuse, hang and end, and no other test notices.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use portolan::sites::{Site, SiteAutomationHosts, SiteHost, SiteJumpHost, SiteName};

use super::cluster::Cluster;
use super::program::{free_port, stderr, stdout};

/// Asks for the one-time code that `cluster.json` knows the secret of.
pub const CODE: &str = "auth required pam_google_authenticator.so secret=${HOME}/.google_authenticator\n";

/// Where the cluster's folder is on the login host.
const INSIDE: &str = "/harbour";

/// The processes that hold connections to port `$P`.
const CONNECTIONS: &str = "ss -Htnp \"sport = :$P\" | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u";

/// A running server; ended when dropped.
pub struct Server {
    pub port: u16,
    name: String,
    /// Its folder, as this machine sees it.
    dir: PathBuf,
}

impl Server {
    /// A key is enough.
    pub fn start() -> Self {
        Self::with("")
    }

    /// A key is enough; `options` come first in its configuration, so they count.
    pub fn with(options: &str) -> Self {
        Self::launch(&format!("{options}\nAuthenticationMethods publickey\n"), "", &[])
    }

    /// A key, then whatever these lines of a PAM configuration ask.
    pub fn asking(pam: &str, options: &str) -> Self {
        Self::asking_beside(&[], pam, options)
    }

    /// The same with files beside it, which are in the folder `@DIR@`.
    pub fn asking_beside(files: &[(&str, &str)], pam: &str, options: &str) -> Self {
        let methods = "AuthenticationMethods publickey,keyboard-interactive:pam";
        let options = format!("{options}\nKbdInteractiveAuthentication yes\n{methods}\n");
        Self::launch(&options, pam, files)
    }

    fn launch(options: &str, pam: &str, files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("harbour-test-{}-{number}", std::process::id());
        let dir = Cluster::get().dir().join("run").join(&name);
        std::fs::create_dir_all(dir.join("keys")).unwrap();
        let mut server = Self { port: 0, name, dir };
        server.make_host_key();
        let inside = server.inside();
        let pam = format!("{pam}account required pam_permit.so\nsession required pam_permit.so\n");
        for (name, text) in files {
            server.write(name, text);
        }
        server.write("pam", &pam.replace("@DIR@", &inside));
        let is_named = options.contains("Subsystem sftp ");
        let files = if is_named { "" } else { "Subsystem sftp /usr/lib/openssh/sftp-server" };
        loop {
            server.port = free_port();
            let config = format!(
                "{options}\nPort {}\nListenAddress 127.0.0.1\nHostKey {inside}/host\nPidFile {inside}/pid\n\
                 AuthorizedKeysFile {inside}/keys/%u\nPasswordAuthentication no\nPermitRootLogin no\nUsePAM yes\n\
                 UseDNS no\nPrintMotd no\nPrintLastLog no\nMaxStartups 200\nLogLevel VERBOSE\n{files}\n",
                server.port
            );
            server.write("config", &config.replace("@DIR@", &inside));
            server.start_again();
            // Another program may have taken the port meanwhile.
            if !server.log().contains("Cannot bind any address") {
                return server;
            }
            server.write("log", "");
        }
    }

    /// Starts it, or starts it again after [`Server::kill`]. It listens when this returns, unless its port is taken.
    pub fn start_again(&self) {
        // As in `cluster/inside/sshd.sh`: the PAM service is called as the program, or as it says since 9.8.
        self.tell(
            "cp pam /etc/pam.d/$N; ln -sfn /usr/sbin/sshd $N
             if /usr/sbin/sshd -T -f config -o PAMServiceName=x >/dev/null 2>&1; then
               printf '%s\\n' \"PAMServiceName $N\" 'PerSourcePenalties no' >>config; fi
             /harbour/code/inside/on-host login1 $PWD/$N -E $PWD/log -f $PWD/config || exit 1
             until [ -s pid ] || grep -qs 'Cannot bind any address' log; do sleep 0.02; done",
        );
    }

    fn make_host_key(&self) {
        let key = self.dir.join("host");
        let _ = std::fs::remove_file(&key);
        let made = std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
            .arg(&key)
            .status();
        assert!(made.unwrap().success());
    }

    /// Shows another host key from now on; connections that stand go on.
    pub fn change_host_key(&self) {
        self.make_host_key();
        self.stop_listening();
        self.start_again();
    }

    /// Ends it together with its connections.
    pub fn kill(&self) {
        self.stop_listening();
        self.drop_connections();
    }

    fn stop_listening(&self) {
        self.tell("pid=$(cat pid); kill $pid; while kill -0 $pid 2>/dev/null; do sleep 0.02; done; rm -f pid");
    }

    /// Ends its connections; it goes on listening.
    pub fn drop_connections(&self) {
        self.signal_connections("KILL");
    }

    /// Makes the listening process hang (STOP) or go on (CONT).
    pub fn signal(&self, signal: &str) {
        self.tell(&format!("kill -{signal} $(cat pid)"));
    }

    /// The same for the processes of its connections. With one of them, others may end before it is their turn.
    pub fn signal_connections(&self, signal: &str) {
        self.tell(&format!("{CONNECTIONS} | xargs -r kill -{signal} 2>/dev/null || true"));
    }

    /// Lets someone in with a key; `line` may carry restrictions.
    pub fn allow(&self, user: &str, line: &str) {
        use std::io::Write as _;
        let path = self.dir.join("keys").join(user);
        let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    /// Lets nobody in whose name this is.
    pub fn forget(&self, user: &str) {
        let _ = std::fs::remove_file(self.dir.join("keys").join(user));
    }

    /// Replaces one of the files beside it.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.join(name), text).unwrap();
    }

    /// Reads one of the files beside it.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.join(name)).unwrap_or_default()
    }

    /// The line of its host key.
    pub fn host_key(&self) -> String {
        self.read("host.pub").trim_end().trim_end_matches(" test").to_owned()
    }

    /// How often somebody connected to it.
    pub fn visits(&self) -> usize {
        self.log().matches("Connection from 127.0.0.1").count()
    }

    /// How many connections it has now.
    pub fn connections(&self) -> usize {
        connections_to(self.port)
    }

    /// What it wrote to its log.
    pub fn log(&self) -> String {
        self.read("log")
    }

    /// It as a site of the portal.
    pub fn site(&self, slug: &str) -> Site {
        site_at(slug, self.port)
    }

    /// What to pin for a site all of whose hosts it is.
    pub fn pins(&self) -> Vec<(String, String)> {
        ["login", "jump", "robot"].map(|hop| (hop.to_owned(), self.host_key())).to_vec()
    }

    /// Its folder, as the cluster sees it.
    pub fn inside(&self) -> String {
        format!("{INSIDE}/run/{}", self.name)
    }

    /// Runs a script as root on the cluster, in the server's folder; `$N` is its name and `$P` its port.
    pub fn tell(&self, script: &str) -> String {
        let output = self.try_to_tell(script);
        assert!(output.status.success(), "{script}\n{}", stderr(&output));
        stdout(&output)
    }

    fn try_to_tell(&self, script: &str) -> std::process::Output {
        let script = format!("cd {} && {{ {script}\n}}", self.inside());
        let vars = [format!("N={}", self.name), format!("P={}", self.port)];
        Cluster::get().script(&["exec", "env", &vars[0], &vars[1], "sh", "-c", &script])
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let script =
            format!("[ ! -e pid ] || kill -9 $(cat pid); {CONNECTIONS} | xargs -r kill -9; rm -rf $PWD /etc/pam.d/$N");
        if std::thread::panicking() {
            eprintln!("The server said:\n{}", self.log());
        }
        self.try_to_tell(&script);
    }
}

/// A site on a port of this machine, with room for the haste of tests.
pub fn site_at(slug: &str, port: u16) -> Site {
    let mut site = Site::with_defaults(SiteName(slug.parse().unwrap()), &format!("Harbour {slug}"));
    site.login.host = Some(host());
    site.login.port = port;
    site.limits.calls_per_minute = 300;
    site.limits.connects_per_hour = 500;
    site
}

/// The same, reached through another port first.
pub fn through(mut site: Site, port: u16) -> Site {
    site.login.jump = Some(SiteJumpHost { host: host(), port });
    site
}

/// The same, with an automation host.
pub fn with_automation_host(mut site: Site, port: u16) -> Site {
    site.automation = Some(SiteAutomationHosts { hosts: vec![host()], port, ..SiteAutomationHosts::default() });
    site
}

fn host() -> SiteHost {
    SiteHost("127.0.0.1".parse().unwrap())
}

/// TCP's states, as the kernel writes them.
const ESTABLISHED: &str = "01";
const CLOSE_WAIT: &str = "08";

/// How many connections to a port of this machine are open.
pub fn connections_to(port: u16) -> usize {
    count_connections(port, &[ESTABLISHED])
}

/// The same, with those that the other end has closed and the server has not yet.
pub fn connections_held_by_server(port: u16) -> usize {
    count_connections(port, &[ESTABLISHED, CLOSE_WAIT])
}

fn count_connections(port: u16, states: &[&str]) -> usize {
    let port = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[1].ends_with(&port) && states.contains(&row[3])).count()
}

/// Whether a process is there and has not ended.
pub fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z')))
}
