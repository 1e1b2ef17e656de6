//! Parsing and writing a site: what is accepted, what is refused, and with which message.

use super::*;

const SMALL: &str = "name = \"a\"\ntitle = \"A\"\n";

fn refused(text: &str) -> String {
    Site::from_toml(text).unwrap_err().to_string()
}

#[test]
fn clusters_of_one_centre_share_its_key_page() {
    let site = |more: &str| Site::from_toml(&format!("{SMALL}{more}")).unwrap();
    let page = |url: &str| site(&format!("[keys]\npage = \"{url}\"\n"));
    let own = page("https://keys.example.org/ssh");
    assert!(own.is_same_centre(&page("https://KEYS.example.org/other?x=1")));
    assert!(!own.is_same_centre(&page("https://keys.example.com/ssh")));
    assert!(!own.is_same_centre(&site("")) && !site("").is_same_centre(&own));
    assert!(!site("").is_same_centre(&site("")), "nothing tells that they belong together");
    let run_by = |who: &str| site(&format!("operator = \"{who}\"\n"));
    assert!(run_by("Uni").is_same_centre(&run_by("Uni")) && !run_by("Uni").is_same_centre(&run_by("Institute")));
    let preset = |name: &str| presets().iter().find(|site| site.name.as_str() == name).unwrap();
    assert!(preset("fir").is_same_centre(preset("vulcan")) && preset("saga").is_same_centre(preset("olivia")));
    assert!(!preset("fir").is_same_centre(preset("lumi")));
}

#[test]
fn two_lines_make_a_site() {
    let site = Site::from_toml(SMALL).unwrap();
    assert_eq!(site.family, SiteFamily::Other);
    assert_eq!((site.login.port, site.login.preferred_factors()), (22, &[SiteLoginFactor::Key][..]));
    assert!(!site.login.needs_person() && site.keys.opens.0 && site.jobs.mail.0);
    assert_eq!(site.limits, SiteRateLimits::default());
    assert_eq!(site.to_toml().unwrap(), SMALL, "an export holds no more than was said");
    assert_eq!(site.to_json().unwrap(), r#"{"name":"a","title":"A"}"#);
    assert!(site.host().unwrap_err().to_string().contains("`login.host`"));
}

#[test]
fn every_preset_survives_writing_and_reading() {
    for site in presets() {
        let toml = site.to_toml().unwrap();
        assert_eq!(&Site::from_toml(&toml).unwrap(), site, "{toml}");
        assert_eq!(&Site::from_json(&site.to_json().unwrap()).unwrap(), site);
    }
}

#[test]
fn what_cannot_be_read_names_line_and_field() {
    let error = refused("name = \"a\"\ntitle = \"A\"\n[login]\nhots = \"x\"\n");
    assert!(error.contains("line 4") && error.contains("`hots`"), "{error}");
    let error = refused("name = \"a\"\ntitle = \"A\"\n[login]\nport = 1\nhost = \"-oProxyCommand=x\"\n");
    assert!(error.contains("line 5, in `login.host`: Enter a host name"), "{error}");
    let error = refused("name = \"a\"\n");
    assert!(error.contains("`title`"), "{error}");
    let error = refused("name = \"a\"\ntitle\n");
    assert!(error.contains("line 2"), "{error}");
    for text in ["", "[[x]]", "\u{0}", "name = 1\ntitle = \"A\""] {
        assert!(refused(text).ends_with('.'), "{text}");
    }
    let error = Site::from_json(r#"{"name":"a","title":"A","login":{"host":"a b"}}"#).unwrap_err();
    assert!(error.to_string().contains("in `login.host`: Enter a host name"), "{error}");
    for text in ["", "null", "{", "[]", r#"{"name":null}"#, r#"{"name":"a","title":"A","x":1}"#] {
        assert!(Site::from_json(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_not_possible_is_named_with_advice() {
    for (more, field) in [
        ("[login]\nport = 0", "login.port"),
        ("[login]\naccepts = [[]]", "login.accepts[0]"),
        ("[login]\naccepts = [[\"key\", \"key\"]]", "login.accepts[0]"),
        ("[login]\ngrace_s = 5", "login.grace_s"),
        ("[login]\nregion = \"a\\nb\"", "login.region"),
        ("[login.jump]\nhost = \"j\"\nport = 0", "login.jump.port"),
        ("[login]\naccepts = [[\"password\"]]", "keys.opens"),
        ("[keys]\nopens = false", "keys.why_not"),
        ("[keys]\nwhy_not = \"x\"", "keys.why_not"),
        ("[keys]\nsteps = [\"Only one.\"]", "keys.steps"),
        ("[keys]\nuser_name = \"a\\u202Eb\"", "keys.user_name"),
        ("[automation]\nhosts = []", "automation.hosts"),
        (
            "[automation]\nhosts = [\"r\"]\n[[automation.wrappers]]\npath = \"x y\"\nallows = \"z\"",
            "automation.wrappers[0].path",
        ),
        ("[limits]\nsessions = 9", "limits.sessions"),
        ("[limits]\nsessions = 0", "limits.sessions"),
        ("[limits]\ncalls_per_minute = 601", "limits.calls_per_minute"),
        ("[limits]\nidle_minutes = 0", "limits.idle_minutes"),
        ("[shell.prepare]\nmodule = \"a; rm x\"", "shell.prepare.module"),
        ("[shell.prepare]\nmodule = \"a\"\nsource = \"/a/../b\"", "shell.prepare.source"),
        ("[jobs]\nmax_hours = 0", "jobs.max_hours"),
        ("[dashboards]\ncores = 0", "dashboards.cores"),
        ("[dashboards]\nmemory_mb = 1", "dashboards.memory_mb"),
        ("[dashboards]\njob_type = \"small\"", "dashboards.job_type"),
        ("[dashboards]\ngpu = \"h100\"", "dashboards.gpu"),
        ("[dashboards]\nnote = \"a\\nb\"", "dashboards.note"),
        ("[jobs]\ntmpdir = \"SLURM_TMPDIR\"", "jobs.tmpdir"),
        ("[jobs]\ntmpdir = \"$(id)\"", "jobs.tmpdir"),
        ("[jobs]\nproxy = \"http://p:1/\"", "jobs.proxy"),
        ("[jobs]\ninternet = \"proxy\"\nproxy = \"http://p:1/ x\"", "jobs.proxy"),
        ("[jobs]\nmodules = { python = \"a; id\" }", "jobs.modules.python"),
        ("[jobs]\nmodules = { \"a b\" = \"c\" }", "jobs.modules"),
        ("[jobs]\naccount_suffixes = [\"$x\"]", "jobs.account_suffixes[0]"),
        ("[[jobs.gpus]]\nname = \"a b\"\nlabel = \"A\"", "jobs.gpus[0].name"),
        ("[[jobs.gpus]]\nname = \"a\"\nlabel = \"A\"\nper_node = 0", "jobs.gpus[0].per_node"),
        ("[[jobs.gpus]]\nname = \"a\"\nlabel = \"A\"\n[[jobs.slices]]\nname = \"a\"\nlabel = \"A\"", "jobs.gpus"),
        ("[[jobs.types]]\nname = \"a\"\nlabel = \"A\"\nqos = \"-x\"", "jobs.types[0].qos"),
        ("[[jobs.types]]\nname = \"a\"\nlabel = \"A\"\nmin_nodes = 4\nmax_nodes = 2", "jobs.types[0].max_nodes"),
        ("[[units.factors]]\nper = \"gpu\"\nname = \"a\"\nvalue = 0.0", "units.factors[0].value"),
        ("[[units.factors]]\nper = \"gpu\"\nname = \"a\"\nvalue = nan", "units.factors[0].value"),
        ("[[uncertain]]\nfield = \"\"\nwhy = \"x\"", "uncertain[0].field"),
    ] {
        let error = refused(&format!("{SMALL}{more}\n"));
        assert!(error.contains(&format!("`{field}` ")) && error.ends_with('.'), "{more}: {error}");
    }
    let long = format!("name = \"a\"\ntitle = \"{}\"\n", "x".repeat(81));
    assert!(refused(&long).contains("`title`"));
    let many = format!("{SMALL}notes = [{}]\n", "\"x\",".repeat(41));
    assert!(refused(&many).contains("`notes`"));
}

#[test]
fn paths_may_have_variables_and_nothing_that_runs() {
    let with = |path: &str| {
        let area = format!("label = \"A\"\nkind = \"home\"\npath = '{path}'\npurpose = \"B\"");
        Site::from_toml(&format!("{SMALL}[[storage.areas]]\n{area}\n"))
    };
    for good in ["/a/b", "~", "~/p/{project}", "$HOME", "$USERWORK/x", "/cluster/home/$USER", "/p/{project}/x"] {
        assert!(with(good).is_ok(), "{good}: {:?}", with(good));
    }
    for bad in
        ["", "a", "a/b", "$", "$home", "$(id)", "/a b", "/a;b", "/$(id)", "/a/../b", "/a$X", "~bob/x", "/`id`", "/*"]
    {
        assert!(with(bad).is_err(), "{bad}");
    }
}

/// Descriptions written for 0.1.0, by administrators or into the database, can still be read.
#[test]
fn old_section_names_are_understood() {
    let old = Site::from_toml("name = \"x\"\ntitle = \"X\"\n[robot]\nhosts = [\"r.example.org\"]\n[boards]\ncores = 3");
    let site = old.unwrap();
    assert_eq!(site.automation.as_ref().unwrap().hosts[0].as_str(), "r.example.org");
    assert_eq!(site.dashboards.cores, 3);
    let json = site.to_json().unwrap();
    assert!(json.contains("\"automation\"") && json.contains("\"dashboards\""), "{json}");
    let older = json.replace("\"automation\"", "\"robot\"").replace("\"dashboards\"", "\"boards\"");
    assert_eq!(Site::from_json(&older).unwrap(), site);
}
