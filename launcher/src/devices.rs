//! Which GPUs this machine has, which of them the environment lets us use, and how many shards follow from that. Knows
//! nothing of models and memory.

use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::cli::Surroundings;
use crate::cli::groups::Device;
use crate::error::StartError;

/// How long `nvidia-smi` may take; it wakes sleeping drivers up.
const QUERY_TIMEOUT: Duration = Duration::from_secs(15);

/// The GPUs of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gpus {
    /// Product names of all that `nvidia-smi` lists; empty without it, which does not mean that there are none.
    pub names: Vec<String>,
    /// How many the environment makes visible; `None` = it does not say.
    pub visible: Option<usize>,
}

/// What the user said about the number of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardWish {
    /// `--sharded`.
    pub sharded: Option<bool>,
    /// `--num-shard`.
    pub count: Option<usize>,
    /// `--device`.
    pub device: Device,
}

/// The product names that `nvidia-smi` lists; empty when it is missing, fails or takes too long.
pub fn query_names() -> Vec<String> {
    let (answer, wait) = mpsc::channel();
    thread::spawn(move || {
        let output = Command::new("nvidia-smi").args(["--query-gpu=gpu_name", "--format=csv,noheader"]).output();
        // The receiver may have given up already.
        let _late = answer.send(output);
    });
    match wait.recv_timeout(QUERY_TIMEOUT) {
        Ok(Ok(output)) if output.status.success() => non_empty_lines(&String::from_utf8_lossy(&output.stdout)),
        _ => Vec::new(),
    }
}

fn non_empty_lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

// === impl Gpus ===

impl Gpus {
    /// Count what the environment lets us see of the GPUs with these names.
    pub fn new(names: Vec<String>, surroundings: &Surroundings) -> Self {
        let visible = match (&surroundings.cuda_visible_devices, &surroundings.nvidia_visible_devices) {
            (Some(list), _) => Some(count_items(list)),
            (None, Some(list)) if matches!(list.as_str(), "all" | "void") => {
                Some(names.len()).filter(|count| *count > 0)
            }
            (None, Some(list)) if list == "none" => Some(0),
            (None, Some(list)) => Some(count_items(list)),
            (None, None) => None,
        };
        Self { names, visible }
    }

    /// How many can be used: the visible ones, or all when the environment does not say; `None` = unknown.
    pub fn usable(&self) -> Option<usize> {
        self.visible.or(Some(self.names.len()).filter(|count| *count > 0))
    }

    /// The name of the first one in the form of the `x-compute-type` header, or `cpu`.
    pub fn card(&self, device: Device) -> String {
        match self.names.first() {
            Some(name) if device != Device::Cpu && self.usable() != Some(0) => name.to_lowercase().replace(' ', "-"),
            _ => "cpu".to_owned(),
        }
    }

    /// How many shards to start. On a bare machine, where no variable names GPUs, one unless more are asked for.
    ///
    /// # Errors
    /// The wish cannot be met by these GPUs, or contradicts itself.
    pub fn shard_count(&self, wish: ShardWish) -> Result<usize, StartError> {
        let count = match (wish.sharded, wish.count) {
            (Some(true), None) if wish.device == Device::Cpu => {
                return Err(StartError::new(
                    "`--sharded true` with `--device cpu` does not say how many shards",
                    "give `--num-shard N`",
                ));
            }
            (Some(true), None) => self.usable().unwrap_or(0),
            (Some(false), None) => 1,
            (None, None) if wish.device == Device::Cpu => 1,
            (None, None) => self.visible.unwrap_or(1).max(1),
            (_, Some(count)) => count,
        };
        if wish.sharded == Some(true) && count <= 1 {
            return Err(StartError::new(
                format!("`--sharded true` needs at least 2 shards, but there would be {count}"),
                "give `--num-shard N` with N of 2 or more, or leave `--sharded` out",
            ));
        }
        self.check(count, wish.device)?;
        Ok(count)
    }

    fn check(&self, count: usize, device: Device) -> Result<(), StartError> {
        if count == 0 {
            return Err(StartError::new("`--num-shard` is 0", "give 1 or more"));
        }
        if device == Device::Cuda && self.usable() == Some(0) {
            return Err(StartError::new(
                "`--device cuda` was given, but no GPU is visible",
                "check `nvidia-smi` and CUDA_VISIBLE_DEVICES, or give `--device cpu`",
            ));
        }
        // Without any GPU the shards share the CPU, or say themselves what is wrong.
        match self.usable() {
            Some(usable) if device != Device::Cpu && usable > 0 && count > usable => Err(StartError::new(
                format!("{count} shards need {count} GPUs, but {usable} can be used"),
                format!("give `--num-shard {usable}` or less, or make more GPUs visible"),
            )),
            _ => Ok(()),
        }
    }
}

/// CUDA reads the list up to the first invalid item.
fn count_items(list: &str) -> usize {
    list.split(',').map(str::trim).take_while(|item| !item.is_empty() && *item != "-1").count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(names: usize, cuda: Option<&str>, nvidia: Option<&str>) -> Gpus {
        let surroundings = Surroundings {
            cuda_visible_devices: cuda.map(str::to_owned),
            nvidia_visible_devices: nvidia.map(str::to_owned),
            ..Surroundings::default()
        };
        Gpus::new(vec!["NVIDIA H200".to_owned(); names], &surroundings)
    }

    fn wish(sharded: Option<bool>, count: Option<usize>) -> ShardWish {
        ShardWish { sharded, count, device: Device::Auto }
    }

    #[test]
    fn visible_devices_are_counted_as_cuda_does() {
        assert_eq!(gpus(8, Some("0,1"), Some("all")).usable(), Some(2));
        assert_eq!(gpus(8, Some(""), None).usable(), Some(0));
        assert_eq!(gpus(8, Some("3,-1,2"), None).usable(), Some(1));
        assert_eq!(gpus(8, None, Some("all")).usable(), Some(8));
        assert_eq!(gpus(8, None, Some("void")).usable(), Some(8));
        assert_eq!(gpus(8, None, Some("GPU-1,GPU-2")).usable(), Some(2));
        assert_eq!(gpus(8, None, Some("none")).usable(), Some(0));
        assert_eq!(gpus(0, None, Some("all")).usable(), None);
        assert_eq!(gpus(8, None, None), Gpus { names: vec!["NVIDIA H200".to_owned(); 8], visible: None });
    }

    #[test]
    fn shard_count_follows_the_table() {
        let four = gpus(4, Some("0,1,2,3"), None);
        assert_eq!(four.shard_count(wish(Some(true), None)).unwrap(), 4);
        assert_eq!(four.shard_count(wish(Some(true), Some(2))).unwrap(), 2);
        assert_eq!(four.shard_count(wish(Some(false), None)).unwrap(), 1);
        assert_eq!(four.shard_count(wish(Some(false), Some(3))).unwrap(), 3);
        assert_eq!(four.shard_count(wish(None, Some(3))).unwrap(), 3);
        assert_eq!(four.shard_count(wish(None, None)).unwrap(), 4);
        assert_eq!(gpus(4, None, None).shard_count(wish(None, None)).unwrap(), 1);
        assert_eq!(gpus(0, None, Some("all")).shard_count(wish(None, None)).unwrap(), 1);
    }

    #[test]
    fn impossible_wishes_are_refused_with_both_numbers() {
        assert!(gpus(0, None, None).shard_count(wish(Some(true), None)).is_err());
        assert!(gpus(4, None, None).shard_count(wish(Some(true), Some(1))).is_err());
        assert!(gpus(4, None, None).shard_count(wish(None, Some(0))).is_err());
        let error = gpus(2, None, None).shard_count(wish(None, Some(3))).unwrap_err();
        assert_eq!(error.cause, "3 shards need 3 GPUs, but 2 can be used");
        let cuda = ShardWish { device: Device::Cuda, ..wish(None, None) };
        assert!(gpus(1, Some(""), None).shard_count(cuda).unwrap_err().cause.contains("no GPU is visible"));
        assert_eq!(gpus(0, None, None).shard_count(cuda).unwrap(), 1);
    }

    #[test]
    fn a_cpu_takes_any_number_of_shards() {
        let cpu = |count| ShardWish { device: Device::Cpu, ..wish(None, count) };
        assert_eq!(gpus(1, None, None).shard_count(cpu(Some(3))).unwrap(), 3);
        assert_eq!(gpus(2, Some("0,1"), None).shard_count(cpu(None)).unwrap(), 1);
        assert_eq!(gpus(0, None, None).shard_count(wish(None, Some(3))).unwrap(), 3);
        assert_eq!(gpus(2, None, None).card(Device::Cpu), "cpu");
        assert_eq!(gpus(2, None, None).card(Device::Auto), "nvidia-h200");
    }
}
