-- The activity log names each cluster by its title. Some events were written with its short name.
UPDATE activity SET subject = (SELECT title FROM clusters WHERE slug = activity.subject)
    WHERE (action LIKE 'cluster.%' OR action LIKE 'line.%' OR action LIKE 'jobs.%')
      AND subject IN (SELECT slug FROM clusters);

-- Notifications about jobs on a cluster that their owner has forgotten lead to no page. They are now deleted at once.
DELETE FROM notifications WHERE job_id IN (
    SELECT j.id FROM jobs j WHERE NOT EXISTS (
        SELECT 1 FROM connections c WHERE c.person_id = j.person_id AND c.cluster_id = j.cluster_id));
