-- The page, the code and the table say user name.
ALTER TABLE usage_login_names RENAME TO usage_user_names;
ALTER TABLE usage_user_names RENAME COLUMN login TO user_name;
UPDATE activity SET action = 'usage.user-name-set' WHERE action = 'usage.login-named';
