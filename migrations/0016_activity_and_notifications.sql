-- The activity log names each cluster by its title. Some events were written with its short name.
UPDATE activity SET subject = (SELECT title FROM clusters WHERE slug = activity.subject)
    WHERE (action LIKE 'cluster.%' OR action LIKE 'line.%' OR action LIKE 'jobs.%')
      AND subject IN (SELECT slug FROM clusters);
