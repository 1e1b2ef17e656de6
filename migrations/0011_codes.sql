-- Pages decide by codes and columns, never by the words of a sentence.

-- What a server printed when a login failed stood behind the sentence, after a blank line. It gets its own column.
ALTER TABLE connections ADD COLUMN problem_notices TEXT NOT NULL DEFAULT '';
UPDATE connections SET problem_notices = substr(problem, instr(problem, char(10, 10)) + 2),
                       problem = substr(problem, 1, instr(problem, char(10, 10)) - 1)
    WHERE instr(problem, char(10, 10)) > 0;

-- Every problem has a code from now on: those of a login (ssh::SshLoginError::code), 'lost', 'lost-silent' and 'idle'.
UPDATE connections SET problem_code = CASE
        WHEN instr(problem, 'The connection was lost.') = 1 THEN 'lost'
        WHEN instr(problem, 'The network between this portal and the cluster was silent') = 1 THEN 'lost-silent'
        WHEN instr(problem, 'Closed after ') = 1 THEN 'idle'
        ELSE 'other' END
    WHERE problem <> '' AND problem_code = '';

-- The same for what the cluster printed when usage could not be read: it stood behind the words " It said: ".
ALTER TABLE usage_sources ADD COLUMN problem_output TEXT NOT NULL DEFAULT '';
UPDATE usage_sources SET problem_output = substr(problem, instr(problem, ' It said: ') + 10),
                         problem = substr(problem, 1, instr(problem, ' It said: ') - 1)
    WHERE instr(problem, ' It said: ') > 0;
