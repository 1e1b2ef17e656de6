use super::*;

#[test]
fn a_rank_in_pieces() {
    let factors = SprioFactors {
        priority: 7924,
        fair_share: 7692,
        size: 82,
        partition_points: 200,
        site: -5,
        nice: 50,
        ..SprioFactors::default()
    };
    let rank = build_job_priority(String::new(), "fit".into(), &factors, total_points(&factors));
    let whats: Vec<_> = rank.parts.iter().map(|part| part.what).collect();
    assert_eq!(whats, ["Fair share", "Job size", "Partition"]);
    assert_eq!((rank.parts[0].at, rank.parts[0].width), (0, 964));
    let last = rank.parts.last().unwrap();
    assert!(last.at + last.width <= 1002);
    assert_eq!(rank.nice_cut, Some((993, 7)), "what was given up is no part of the bar");
    assert_eq!((rank.points.as_str(), rank.given_up.as_str()), ("7,924 points", "50 points"));
    assert!(build_job_priority(String::new(), String::new(), &SprioFactors::default(), 0).parts.is_empty());
}

#[test]
fn a_longer_bar_means_more() {
    let account = |share: f64, used: f64, own: f64| {
        let group = SshareRow { norm_shares: Some(share), effective_usage: Some(used), ..SshareRow::default() };
        let user = Some("ada".to_owned());
        let person = SshareRow { user: user.clone(), effective_usage: Some(own), ..SshareRow::default() };
        let facts = GroupAccountContext {
            cluster: ClusterId(1),
            slug: "key".into(),
            title: "Key".into(),
            account: "def-x".into(),
            slurm_names: Vec::new(),
            site: std::sync::Arc::new(crate::sites::presets()[0].clone()),
            discovered: std::sync::Arc::default(),
            own_user: user,
            is_narrow: false,
            sources: Vec::new(),
            all_sources: Vec::new(),
        };
        build_account_priority(&[&group, &person], &facts, UnixTime(0)).unwrap()
    };
    let cluster = |accounts| ClusterPriorityCards { accounts, ..ClusterPriorityCards::default() };
    let mut clusters = [cluster(vec![account(0.16, 0.1, 0.66)]), cluster(vec![account(0.66, 0.3, 0.5)])];
    share_one_scale(&mut clusters);
    let mut bars: Vec<(f64, u64)> = Vec::new();
    for account in clusters.iter_mut().flat_map(|cluster| &mut cluster.accounts) {
        bars.extend(account.bars_mut().map(|bar| (bar.fraction, bar.width)));
    }
    assert_eq!(bars.len(), 6);
    bars.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(bars.is_sorted_by_key(|bar| bar.1), "{bars:?}");
}

#[test]
fn the_title_fits_the_answer() {
    for (ratios, title) in [
        (vec![Some(4.0), Some(2.0)], "Your priority is low"),
        (vec![Some(0.2)], "Your priority is high"),
        (vec![Some(0.0), Some(0.5)], "Your priority is high"),
        (vec![Some(1.0)], "Your priority is average"),
        (vec![Some(4.0), Some(0.2)], "Your priority"),
        (vec![None], "Your priority"),
        (vec![], "Your priority"),
    ] {
        assert_eq!(priority_title(ratios.clone().into_iter()), title, "{ratios:?}");
    }
}

#[test]
fn parts_of_a_whole() {
    let ends = [0.0, 0.004, 0.05, 0.17, 0.51, 3.0, f64::NAN].map(|most| bar_scale(most) * 100.0);
    assert_eq!(ends.map(|end| end.to_string()), ["1", "1", "5", "20", "100", "100", "100"]);
    assert_eq!([thousandths(0.2, 0.8), thousandths(1.0, 0.0), thousandths(f64::NAN, 1.0)], [250, 0, 0]);
}
