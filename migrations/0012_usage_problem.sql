-- What a failed read's command printed gets a column of its own. Until now it followed the sentence in `problem`.
ALTER TABLE usage_sources ADD COLUMN problem_output TEXT NOT NULL DEFAULT '';
UPDATE usage_sources
    SET problem        = substr(problem, 1, instr(problem, ' It said: ') - 1),
        problem_output = substr(problem, instr(problem, ' It said: ') + length(' It said: '))
    WHERE instr(problem, ' It said: ') > 0;
