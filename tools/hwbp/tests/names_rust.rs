// SPDX-License-Identifier: GPL-2.0
// names_rust: names of Rust, see names.h.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! row {
    ($place:expr, $object:expr, $gdb:expr) => {
        #[allow(unused_unsafe)]
        unsafe {
            let pointer = std::ptr::addr_of!($object);
            println!("{}\t{:p}\t{}\t\t{}", $place, pointer, size_of(pointer), $gdb);
        }
    };
}

mod bank {
    use super::*;

    pub struct Account {
        pub id: u32,
        pub money: i64,
        pub pair: (u8, u16),
    }

    pub static HITS: AtomicU64 = AtomicU64::new(0);
    pub static mut BALANCE: i64 = 1;
    pub static mut ACCOUNT: Account = Account { id: 1, money: 5, pair: (1, 2) };
    pub static mut TABLE: [u16; 8] = [1; 8];

    #[inline(never)]
    pub fn pay(n: i64) {
        static mut CALLS: u32 = 0;

        unsafe {
            CALLS += 1;
            row!("bank::pay::CALLS", CALLS, "names_rust::bank::pay::CALLS");
            BALANCE += n;
            ACCOUNT.money -= n;
            TABLE[1] += 1;
        }
        HITS.fetch_add(1, Ordering::SeqCst);
    }
}

#[no_mangle]
pub static mut PLAIN: u32 = 1;

fn size_of<T>(_: *const T) -> usize {
    std::mem::size_of::<T>()
}

fn main() {
    bank::pay(1);
    let pair = unsafe { bank::ACCOUNT.pair };
    unsafe { PLAIN += bank::ACCOUNT.id + pair.0 as u32 + pair.1 as u32 };
    row!("names_rust::bank::BALANCE", bank::BALANCE, "names_rust::bank::BALANCE");
    row!("bank::BALANCE", bank::BALANCE, "names_rust::bank::BALANCE");
    row!("BALANCE", bank::BALANCE, "names_rust::bank::BALANCE");
    row!("bank::HITS", bank::HITS, "names_rust::bank::HITS");
    row!("bank::ACCOUNT.money", bank::ACCOUNT.money, "names_rust::bank::ACCOUNT.money");
    row!("bank::ACCOUNT.pair.1", bank::ACCOUNT.pair.1, "names_rust::bank::ACCOUNT.pair.1");
    row!("bank::ACCOUNT", bank::ACCOUNT, "names_rust::bank::ACCOUNT");
    row!("bank::TABLE[1]", bank::TABLE[1], "names_rust::bank::TABLE[1]");
    row!("bank::TABLE", bank::TABLE, "names_rust::bank::TABLE");
    row!("PLAIN", PLAIN, "names_rust::PLAIN");
    println!("bank::pay\t{:p}\tx\t\t", bank::pay as *const ());
    println!("ready");
    let _ = std::io::stdin().read(&mut [0; 1]);
}
