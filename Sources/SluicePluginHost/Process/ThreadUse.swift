import Glibc

/// A sample of the kernel's accounting of the first thread of a process.
package struct ThreadUse {
    /// The time that it ran or waited for a processor since its start, in nanoseconds.
    let busy: UInt64
    /// `true` if it waits for anything but a processor or a disk.
    let isAsleep: Bool
    /// The times before and after reading the sample, in monotonic nanoseconds.
    let from: UInt64
    let to: UInt64

    package init(busy: UInt64, isAsleep: Bool, from: UInt64, to: UInt64) {
        self.busy = busy
        self.isAsleep = isAsleep
        self.from = from
        self.to = to
    }

    /// Returns the time since an earlier sample in which the thread was idle, in nanoseconds. Rounded down in doubt.
    func idle(since last: ThreadUse) -> UInt64 {
        let (passed, used) = (from &- min(last.to, from), busy &- min(last.busy, busy))
        return passed &- min(used, passed)
    }
}

extension ThreadUse {
    /// Takes a sample; nil for an ended process and for a kernel without `CONFIG_SCHED_INFO`.
    ///
    /// Cost: two files of `/proc`, about 20 µs.
    init?(of process: pid_t) {
        let from = monotonicNow()
        // proc_pid_stat(5): the state follows the name, which may contain any byte and ends with the last parenthesis.
        guard let stat = Self.read("/proc/\(process)/stat"), let end = stat.lastIndex(of: UInt8(ascii: ")")), end + 2 < stat.count,
            let schedule = Self.read("/proc/\(process)/schedstat")
        else { return nil }
        let numbers = schedule.split(separator: UInt8(ascii: " ")).prefix(2).compactMap { UInt64(String(decoding: $0, as: UTF8.self)) }
        guard numbers.count == 2 else { return nil }
        self.init(busy: numbers[0] &+ numbers[1], isAsleep: stat[end + 2] == UInt8(ascii: "S"), from: from, to: monotonicNow())
    }

    private static func read(_ path: String) -> [UInt8]? {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        guard case .bytes(let bytes) = Descriptors.read(file) else { return nil }
        return bytes
    }
}
