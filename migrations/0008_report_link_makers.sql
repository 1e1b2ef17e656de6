-- Who made a link to a report: it works for as long as they lead the group. Those of before go by who froze the report.
ALTER TABLE report_links ADD COLUMN person_id INTEGER REFERENCES people (id) ON DELETE SET NULL;
UPDATE report_links SET person_id = (SELECT r.person_id FROM reports r WHERE r.id = report_id);
