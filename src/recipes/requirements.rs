//! Whether a recipe can be used at a site, and if not, why.

use super::context::ComposeCluster;
use super::question::SiteCapability;
use super::recipe::Recipe;
use crate::sites::InternetAccess;

/// Whether a site has a feature. If unknown, assume it does: the cluster reports an error if it doesn't.
pub fn site_has(need: SiteCapability, cluster: &ComposeCluster) -> bool {
    let jobs = &cluster.site.jobs;
    match need {
        SiteCapability::Pip => !jobs.containers_only,
        SiteCapability::Internet => jobs.internet != InternetAccess::No,
        SiteCapability::Gpus => !cluster.gpus.is_empty(),
    }
}

/// Why a recipe can't be used at a site, as a sentence; `None` if it can.
pub fn unmet_requirement(recipe: &Recipe, cluster: &ComposeCluster) -> Option<String> {
    let fits = &recipe.fits;
    let title = &cluster.site.title;
    let problem = if fits.gpus && !site_has(SiteCapability::Gpus, cluster) {
        format!("Needs a GPU, and {title} has none.")
    } else if fits.pip && !site_has(SiteCapability::Pip, cluster) {
        format!("{title} doesn't allow installing Python packages with pip. Use a container instead.")
    } else if fits.internet && !site_has(SiteCapability::Internet, cluster) {
        format!("Needs internet access, which jobs on {title} don't have. Do this on a login node.")
    } else if fits.nodes && !has_multiple_nodes(cluster) {
        format!("Needs several nodes, and jobs on {title} can use only one.")
    } else {
        return None;
    };
    Some(problem)
}

/// Assume every cluster allows several nodes, unless each of its job types is limited to one.
fn has_multiple_nodes(cluster: &ComposeCluster) -> bool {
    let types = &cluster.site.jobs.types;
    types.is_empty() || types.iter().any(|kind| kind.max_nodes != Some(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::recipes::catalog::RecipeCatalog;
    use crate::recipes::context::AvailableGpu;
    use crate::sites;

    /// A site known only by its preset.
    fn cluster(name: &str) -> ComposeCluster {
        let preset = sites::presets().iter().find(|site| site.name.as_str() == name).unwrap();
        let gpu = |gpu: &sites::SiteGpu| AvailableGpu { model: Some(gpu.name.clone()), ..AvailableGpu::default() };
        ComposeCluster {
            gpus: preset.jobs.gpus.iter().map(gpu).collect(),
            site: Arc::new(preset.clone()),
            user: "alice".into(),
            accounts: Vec::new(),
            partitions: Vec::new(),
            folders: BTreeMap::new(),
            max_array: None,
            keeps_comments: true,
        }
    }

    /// The recipes that don't fit, with a word from the reason.
    fn refused(site: &str) -> Vec<(String, String)> {
        let cluster = cluster(site);
        let book = RecipeCatalog::shipped();
        let all = book.recipes.iter();
        all.filter_map(|recipe| Some((recipe.name.clone(), unmet_requirement(recipe, &cluster)?))).collect()
    }

    fn names(site: &str) -> Vec<String> {
        let mut names: Vec<String> = refused(site).into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    }

    #[test]
    fn every_preset_refuses_just_what_it_lacks() {
        let gpus = ["pytorch", "pytorch-many", "tensorflow"];
        let internet = ["collect-wheels", "fetch-data", "get-code"];
        for site in sites::presets() {
            let mut expected: Vec<&str> = Vec::new();
            if site.jobs.gpus.is_empty() {
                expected.extend(gpus);
            }
            if site.jobs.internet == InternetAccess::No {
                expected.extend(internet);
            }
            if site.jobs.containers_only {
                expected.extend(["collect-wheels", "prepare-environment"]);
            }
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(names(site.name.as_str()), expected, "{}", site.name.as_str());
        }
    }

    #[test]
    fn the_sites_that_people_know() {
        assert_eq!(names("demo"), [""; 0]);
        assert_eq!(names("narval"), ["collect-wheels", "fetch-data", "get-code"]);
        assert_eq!(names("olivia"), ["collect-wheels", "prepare-environment"]);
        assert!(names("trillium").contains(&"pytorch".to_owned()));
        for site in sites::presets() {
            for (name, sentence) in refused(site.name.as_str()) {
                assert!(sentence.ends_with('.') && sentence.contains(&site.title), "{name}: {sentence}");
            }
        }
    }

    #[test]
    fn several_nodes() {
        let book = RecipeCatalog::shipped();
        let mut recipe = (**book.find("pytorch-many").unwrap()).clone();
        recipe.fits.nodes = true;
        let mut cluster = cluster("demo");
        assert_eq!(unmet_requirement(&recipe, &cluster), None);
        let mut site = (*cluster.site).clone();
        for kind in &mut site.jobs.types {
            kind.max_nodes = Some(1);
        }
        cluster.site = Arc::new(site);
        assert!(unmet_requirement(&recipe, &cluster).unwrap().contains("can use only one"));
    }
}
