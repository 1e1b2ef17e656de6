//! Whether the files contain the known facts: hosts, fingerprints, GPU names, limits.

use std::collections::BTreeSet;

use super::*;
use crate::sites::{
    BilledResource, InternetAccess, JobOptionRule, QuotaTool, Site, SiteAllocationPeriod, SiteFamily, SiteLoginFactor,
    StorageAreaKind, SubmitFolderRule,
};

fn site(name: &str) -> &'static Site {
    presets().iter().find(|site| site.name.as_str() == name).unwrap()
}

fn gpu_names(name: &str) -> Vec<&'static str> {
    site(name).jobs.gpus.iter().map(|gpu| gpu.name.as_str()).collect()
}

#[test]
fn every_file_of_the_folder_is_in_the_program_and_right() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sites");
    let on_disk: BTreeSet<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let built_in: BTreeSet<String> = PresetFiles::iter().map(std::borrow::Cow::into_owned).collect();
    assert_eq!(on_disk, built_in, "touch src/sites/presets.rs after adding a file");
    for (path, site) in parse_preset_files() {
        let site = site.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(path, format!("{}.toml", site.name));
    }
    assert_eq!(presets().len(), built_in.len() - 1);
    assert_eq!(presets().len(), 15);
    assert_eq!(retired_sites().len(), 5);
}

#[test]
fn hosts_and_fingerprints_are_the_published_ones() {
    for (name, host, key) in [
        ("fir", "fir.alliancecan.ca", "NJgHnZFzGX0zYyUwCMUdWccvfCaTgKmZKzPaqL8VNM8"),
        ("narval", "narval.alliancecan.ca", "pTKCWpDC142truNtohGm10+lB8gVyrp3Daz4iR5tT1M"),
        ("nibi", "nibi.alliancecan.ca", "iDzUuOogiUaSq47xp/v4IAegE53uLP5VtiP0WFXikRc"),
        ("rorqual", "rorqual.alliancecan.ca", "Xe4zQTOysm5MbI2Euuo5ZKbrnTsqMUgUBRorb9MfYoU"),
        ("trillium", "trillium.alliancecan.ca", "ZdxQWOLHPQb11qPxHh2Vq+trSULZA1+rvTU6pePelSc"),
        ("killarney", "killarney.alliancecan.ca", "M8R87mGQthsmxASCufmSZ/Q0uPY+7Nm+nizC5RP6LPg"),
        ("tamia", "tamia.alliancecan.ca", "QuJnAQCqMWr1qYJfV16pRLTaZmGHBgwgHFZHB+hkCTI"),
        ("saga", "saga.sigma2.no", "YOkZ1uudXrFmaigdnpZ64z497ZccNhdZe/abFkDXOH8"),
        ("betzy", "betzy.sigma2.no", "7M0HDP163k9fOUeZq3KtzLdjISE9Kq/gVygCpyrZPDQ"),
        ("olivia", "olivia.sigma2.no", "eYV+k2UiexuyCPeReFTqC8+ez9prO9z3wds/B74riGw"),
        ("lumi", "lumi.csc.fi", "qCFZThjRw8nf0CiZ9rU7b6Zirjq8slAIl5r0xWaVoD0"),
    ] {
        let site = site(name);
        assert_eq!(site.host().unwrap().as_str(), host);
        assert_eq!(site.login.fingerprints[0].as_str(), format!("SHA256:{key}"), "{name}");
    }
    for name in ["vulcan", "trillium-gpu"] {
        assert!(site(name).login.fingerprints.is_empty());
        assert!(site(name).uncertain.iter().any(|doubt| doubt.field == "login.fingerprints"));
    }
    assert_eq!(site("trillium-gpu").host().unwrap().as_str(), "trillium-gpu.alliancecan.ca");
    assert!(site("generic").host().is_err());
}

#[test]
fn automation_nodes_are_where_the_centre_says() {
    for (name, host) in [
        ("fir", Some("robot.fir.alliancecan.ca")),
        ("narval", Some("robot.narval.alliancecan.ca")),
        ("nibi", Some("robot.nibi.alliancecan.ca")),
        ("rorqual", Some("robot.rorqual.alliancecan.ca")),
        ("trillium", Some("robot2.scinet.utoronto.ca")),
        ("trillium-gpu", Some("trig-robot1.scinet.utoronto.ca")),
        ("tamia", Some("robot.tamia.ecpia.ca")),
        ("killarney", None),
        ("vulcan", None),
        ("saga", None),
        ("lumi", None),
    ] {
        let robot = site(name).automation.as_ref();
        assert_eq!(robot.map(|robot| robot.hosts[0].as_str()), host, "{name}");
        assert!(robot.is_none_or(|robot| robot.support.is_some() && robot.page.is_some()));
    }
}

#[test]
fn ways_in_fit_the_centres() {
    use SiteLoginFactor::{Code, Duo, Key, Password};
    assert_eq!(site("fir").login.accepts, [vec![Key, Duo], vec![Password, Duo]]);
    assert_eq!(site("trillium").login.accepts, [vec![Key, Duo]], "no password there");
    for name in ["saga", "betzy", "olivia"] {
        assert_eq!(site(name).login.preferred_factors(), [Code, Password], "the code comes first");
        assert!(!site(name).keys.opens.0 && site(name).keys.why_not.is_some());
        assert!(site(name).login.needs_person());
    }
    assert!(!site("lumi").login.needs_person() && !site("demo").login.needs_person());
    let page = site("narval").keys.page.as_ref().unwrap();
    assert_eq!(page.as_str(), "https://ccdb.alliancecan.ca/ssh_authorized_keys");
    assert!(site("tamia").login.region.as_ref().unwrap().contains("Canada"));
}

#[test]
fn jobs_ask_for_what_the_cluster_has() {
    assert_eq!(gpu_names("fir"), ["h100"]);
    assert_eq!(gpu_names("narval"), ["a100"]);
    assert_eq!(gpu_names("nibi"), ["h100", "mi300a"]);
    assert_eq!(gpu_names("killarney"), ["l40s", "h100"]);
    assert_eq!(gpu_names("tamia"), ["h100", "h200"]);
    assert_eq!(site("fir").jobs.slices[0].name, "nvidia_h100_80gb_hbm3_1g.10gb");
    assert_eq!(site("rorqual").jobs.slices[2].name, "h100_3g.40gb");
    assert_eq!(site("narval").jobs.slices[1].name, "a100_2g.10gb");
    for name in ["fir", "nibi", "rorqual"] {
        assert_eq!(site(name).jobs.gpu_model, JobOptionRule::Required, "{name}");
        assert_eq!((site(name).jobs.max_hours, site(name).jobs.max_jobs), (Some(168), Some(1000)));
        assert_eq!(site(name).jobs.account_suffixes, ["_cpu", "_gpu"]);
    }
    let trillium = &site("trillium").jobs;
    assert_eq!((trillium.max_hours, trillium.min_minutes), (Some(24), Some(15)));
    assert_eq!((trillium.max_jobs, trillium.max_running), (Some(500), Some(150)));
    assert!(trillium.whole_node && trillium.comment_lost && trillium.account_suffixes.is_empty());
    assert_eq!(trillium.memory, JobOptionRule::Never);
    assert!(site("killarney").jobs.gpu_only && site("trillium-gpu").jobs.gpu_only);
    let prepare = site("killarney").shell.prepare.as_ref().unwrap();
    assert_eq!(prepare.module, "slurm/killarney/25.05.6");
    let internet = |name| site(name).jobs.internet;
    assert_eq!((internet("fir"), internet("narval")), (InternetAccess::Yes, InternetAccess::No));
    assert_eq!((internet("vulcan"), internet("saga")), (InternetAccess::Proxy, InternetAccess::Proxy));
}

#[test]
fn norway_counts_otherwise() {
    let saga = site("saga");
    assert!(!saga.jobs.mail.0 && !saga.units.fair_share && saga.jobs.account_required);
    assert_eq!((saga.jobs.gpu_model, saga.jobs.max_array), (JobOptionRule::Never, Some(1000)));
    assert_eq!(saga.units.period, SiteAllocationPeriod::HalfYears);
    assert_eq!(saga.units.cost_tool.command(), Some("cost"));
    let factor = |per, name: &str| saga.units.factors.iter().find(|f| f.per == per && f.name == name).map(|f| f.value);
    assert_eq!(factor(BilledResource::Gpu, "a100"), Some(8.0));
    assert_eq!(factor(BilledResource::Gib, "normal"), Some(0.257_703_1));
    assert_eq!(site("olivia").jobs.gpus[0].processor.as_deref(), Some("arm64"));
    assert_eq!(saga.storage.area(StorageAreaKind::Scratch).unwrap().path, "$USERWORK");
    let h100 = &site("fir").units.factors[0];
    assert_eq!((h100.name.as_str(), h100.value), ("h100", 12.2));
}

#[test]
fn every_centre_is_complete_enough_to_use() {
    for site in presets() {
        let name = site.name.as_str();
        assert!(site.storage.area(StorageAreaKind::Home).is_some(), "{name}");
        assert!(site.keys.user_name.is_some() && site.keys.steps.len() >= 2, "{name}");
        assert!(site.limits.idle_minutes >= 120 || !site.login.needs_person(), "{name}");
        if site.family != SiteFamily::Other && site.family != SiteFamily::AllianceLike {
            assert!(site.docs.is_some() && site.operator.is_some(), "{name}");
            assert!(site.storage.quota_tool != QuotaTool::None, "{name}");
            assert!(!site.jobs.accounts.is_empty(), "{name}");
        }
        if site.family == SiteFamily::Alliance {
            assert_eq!(site.jobs.submit_from, SubmitFolderRule::Scratch, "{name}");
            assert_eq!(site.jobs.partition, JobOptionRule::Never, "{name}");
            assert!(site.shell.login_shell, "{name}");
        }
        for doubt in &site.uncertain {
            assert!(DOUBTED.contains(&doubt.field.as_str()), "{name}: {}", doubt.field);
            assert!(!doubt.title().contains([':', '.', '_']), "{name}: {} has no words", doubt.field);
        }
    }
}

/// Fields that the portal can check on connecting, or that a job shows in its first line; think first before adding
/// another uncertain field.
const DOUBTED: &[&str] = &[
    "login.host",
    "login.accepts",
    "login.fingerprints",
    "login.region",
    "automation.hosts",
    "shell.prepare",
    "shell.login_shell",
    "storage.areas",
    "jobs.account_suffixes",
    "jobs.gpu_model",
    "jobs.gpus",
    "jobs.internet",
    "jobs.max_hours",
    "jobs.max_jobs",
    "jobs.modules",
    "jobs.partition",
    "jobs.slices",
    "jobs.submit_from",
    "jobs.types",
    "units.cost_tool",
    "units.factors",
    "units.fair_share",
];

#[test]
fn names_are_found_or_explained() {
    assert!(matches!(find_site("fir"), SiteLookupResult::Site(found) if found.title == "Fir"));
    assert!(matches!(find_site(" Fir.AllianceCan.ca. "), SiteLookupResult::Site(found) if found.title == "Fir"));
    for host in ["login.saga.sigma2.no", "robot.tamia.ecpia.ca", "trillium.scinet.utoronto.ca"] {
        assert!(matches!(find_site(host), SiteLookupResult::Site(_)), "{host}");
    }
    for (old, new) in [("cedar", "fir"), ("graham", "nibi"), ("beluga", "rorqual"), ("niagara", "trillium")] {
        let SiteLookupResult::Retired(found) = find_site(old) else { panic!("{old}") };
        assert_eq!(found.instead[0].as_str(), new);
        assert!(found.ended.is_some() && found.sentence.ends_with('.'));
    }
    assert!(matches!(find_site("cedar.computecanada.ca"), SiteLookupResult::Retired(_)));
    assert!(matches!(find_site("fram"), SiteLookupResult::Retired(old) if old.instead.len() == 3));
    assert_eq!(find_site("rorqal"), SiteLookupResult::Unknown { nearest: Some("rorqual") });
    assert_eq!(find_site("cedr"), SiteLookupResult::Unknown { nearest: Some("cedar") });
    assert_eq!(find_site("hpc.example.org"), SiteLookupResult::Unknown { nearest: None });
    assert_eq!(find_site(""), SiteLookupResult::Unknown { nearest: None });
    for old in retired_sites() {
        for new in &old.instead {
            assert!(matches!(find_site(new.as_str()), SiteLookupResult::Site(_)), "{new}");
        }
    }
}
