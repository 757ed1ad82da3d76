//! The users' actions, decided before the run, so that runs with and without faults have the same ones.

use std::{collections::BTreeMap, time::Duration};

use k1s_env::Env;
use k1s_runtime::client::{Client, Error};
use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret},
    },
};

use crate::operator::{Tree, TreeSpec, branch_name, key, leaf_name, named};

/// One step of a user.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create(TreeSpec),
    Change(TreeSpec),
    Delete,
    DeleteBranch(u32),
    EditBranch(u32),
    DeleteLeaf(u32, u32),
    EditLeaf(u32, u32),
    DeleteTrunk,
    EditTrunk,
}

/// One user with a tree and steps, each after a pause.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) tree: String,
    pub(crate) steps: Vec<(Duration, Step)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) users: Vec<User>,
    /// Damage done after all other steps. No later event hides it if it is not repaired.
    pub(crate) last: Vec<User>,
}

/// Maximum number of branches of a tree and of leaves of a branch.
const BRANCHES: u64 = 3;
const LEAVES: u64 = 3;

impl Script {
    /// The script for a seed. Pauses are at most `pause`.
    pub(crate) fn of(seed: u64, pause: Duration) -> Script {
        let (dice, _) = Env::simulated(seed);
        let users = (0..1 + dice.random_below(3)).map(|n| User::of(&dice, format!("t{n}"), pause));
        let users: Vec<User> = users.collect();
        let spoil = |user: &User| {
            let steps = (0..dice.random_below(3)).map(|_| (Duration::ZERO, Step::spoil(&dice)));
            User { tree: user.tree.clone(), steps: steps.collect() }
        };
        let last = users.iter().map(spoil).collect();
        Script { users, last }
    }

    /// The trees that exist at the end.
    pub(crate) fn trees(&self) -> BTreeMap<String, TreeSpec> {
        let mut trees = BTreeMap::new();
        for user in &self.users {
            for (_, step) in &user.steps {
                match step {
                    Step::Create(spec) | Step::Change(spec) => {
                        trees.insert(user.tree.clone(), spec.clone());
                    }
                    Step::Delete => {
                        trees.remove(&user.tree);
                    }
                    _ => {}
                }
            }
        }
        trees
    }
}

impl Step {
    /// A change that the operator has to repair.
    fn spoil(dice: &Env) -> Step {
        // Low numbers exist more often than high ones.
        let branch = small(dice, BRANCHES).min(small(dice, BRANCHES));
        let leaf = small(dice, LEAVES).min(small(dice, LEAVES));
        match dice.random_below(7) {
            0 => Step::DeleteBranch(branch),
            1 => Step::EditBranch(branch),
            2 | 3 => Step::DeleteLeaf(branch, leaf),
            4 => Step::EditLeaf(branch, leaf),
            5 => Step::DeleteTrunk,
            _ => Step::EditTrunk,
        }
    }
}

impl User {
    fn of(dice: &Env, tree: String, pause: Duration) -> User {
        let spec = || TreeSpec {
            branches: small(dice, BRANCHES),
            leaves: small(dice, LEAVES),
            text: format!("{:04x}", dice.random_below(1 << 16)),
        };
        let mut there = false;
        let steps = 4 + dice.random_below(7);
        let steps = (0..steps).map(|_| {
            let step = if there {
                match dice.random_below(10) {
                    0..3 => Step::Change(spec()),
                    3 | 4 => Step::Delete,
                    _ => Step::spoil(dice),
                }
            } else {
                Step::Create(spec())
            };
            there = !matches!(step, Step::Delete);
            (pause.mul_f64(dice.random_f64()), step)
        });
        User { tree, steps: steps.collect() }
    }

    /// Executes all steps, each until it succeeds.
    pub(crate) async fn act(self, env: Env, client: Client) {
        for (pause, step) in &self.steps {
            env.sleep(*pause).await;
            while !self.try_step(&client, step).await {
                env.sleep(Duration::from_millis(200)).await;
            }
        }
    }

    async fn try_step(&self, client: &Client, step: &Step) -> bool {
        let tree = self.tree.as_str();
        let branch = |branch: u32| key(&branch_name(tree, branch));
        let leaf = |branch: u32, leaf: u32| key(&leaf_name(&branch_name(tree, branch), leaf));
        let done = match step {
            Step::Create(spec) => self.create(client, spec).await,
            Step::Change(spec) => edit::<Tree>(client, &key(tree), |tree| tree.spec = spec.clone()).await,
            Step::Delete => client.delete::<Tree>(&key(tree)).await.map(drop),
            Step::DeleteBranch(n) => client.delete::<ConfigMap>(&branch(*n)).await.map(drop),
            Step::EditBranch(n) => {
                edit::<ConfigMap>(client, &branch(*n), |branch| {
                    branch.data =
                        Some([("leaves".into(), "4".into()), ("note".into(), "mine".into())].into());
                })
                .await
            }
            Step::DeleteLeaf(n, m) => client.delete::<Secret>(&leaf(*n, *m)).await.map(drop),
            Step::EditLeaf(n, m) => {
                edit::<Secret>(client, &leaf(*n, *m), |leaf| {
                    leaf.data = Some([("text".into(), ByteString(b"mine".to_vec()))].into());
                })
                .await
            }
            Step::DeleteTrunk => client.delete::<Deployment>(&key(tree)).await.map(drop),
            Step::EditTrunk => {
                edit::<Deployment>(client, &key(tree), |trunk| {
                    trunk.spec.replicas = Some(77);
                })
                .await
            }
        };
        match done {
            Ok(()) => true,
            // An absent object need not be deleted and cannot be damaged.
            Err(error) => error.is_not_found() && !matches!(step, Step::Create(_) | Step::Change(_)),
        }
    }

    async fn create(&self, client: &Client, spec: &TreeSpec) -> Result<(), Error> {
        let tree = Tree { metadata: named(&self.tree), spec: spec.clone(), status: None };
        let Err(error) = client.create(&tree).await else { return Ok(()) };
        if error.is_already_exists() {
            // The old tree is terminating; or this one was created and the response was lost.
            let there = client.live().get::<Tree>(&key(&self.tree)).await?;
            if there.metadata.deletion_timestamp.is_none() && there.spec == *spec {
                return Ok(());
            }
        }
        Err(error)
    }
}

async fn edit<K: k1s_runtime::Object<DynamicType: Default>>(
    client: &Client,
    key: &k1s_runtime::ObjectKey,
    change: impl FnOnce(&mut K),
) -> Result<(), Error> {
    let mut object = client.live().get::<K>(key).await?;
    change(&mut object);
    client.update(&object).await.map(drop)
}

fn small(dice: &Env, bound: u64) -> u32 {
    u32::try_from(dice.random_below(bound)).unwrap()
}
