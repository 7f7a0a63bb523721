import SluiceCore
import SluicePostgres
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// The progress of a whole import on standard error: rows, bytes, rate and time left.
///
/// On a terminal it is one line that is written anew. Elsewhere it is a line every ten seconds, without control characters.
final class ImportMeter: Sendable {
    struct Counts: Hashable, Sendable {
        var documents: Int64 = 0
        var rows: Int64 = 0
        var bytes: Int64 = 0
        var quarantined: Int64 = 0
        /// The documents of this run, without those of an earlier one.
        var fresh: Int64 = 0
        /// The bytes of files that are read, and those of all files, compressed or not.
        var readBytes: Int64 = 0
        var totalBytes: Int64 = 0
    }

    private let counts: Mutex<Counts>
    private let started = ContinuousClock.now
    private let isTerminal: Bool
    private let isSilent: Bool

    /// - Parameter totalBytes: The size of all files, one that is read in several passes as often.
    init(totalBytes: Int64, isSilent: Bool = false) {
        counts = Mutex(Counts(totalBytes: totalBytes))
        isTerminal = isatty(2) == 1
        self.isSilent = isSilent
    }

    /// Counts what an earlier run has imported.
    func resume(_ progress: ImportProgress) {
        counts.withLock {
            $0.documents += progress.documents
            $0.rows += progress.written.rows
            $0.bytes += progress.bytes
            $0.quarantined += progress.quarantined
        }
    }

    func advance(from before: ImportProgress, to after: ImportProgress) {
        counts.withLock {
            $0.documents += after.documents - before.documents
            $0.fresh += after.documents - before.documents
            $0.rows += after.written.rows - before.written.rows
            $0.bytes += after.bytes - before.bytes
            $0.quarantined += after.quarantined - before.quarantined
        }
    }

    func read(_ bytes: Int64) { counts.withLock { $0.readBytes += bytes } }

    /// Leaves out bytes that an earlier run has read. They took no time of this one.
    func skip(_ bytes: Int64) { counts.withLock { $0.totalBytes -= bytes } }

    /// Prints until the task is cancelled.
    func run() async {
        guard !isSilent else { return }
        let pause: Duration = isTerminal ? .milliseconds(250) : .seconds(10)
        while (try? await Task.sleep(for: pause)) != nil { print() }
    }

    /// Ends the line of a terminal.
    func finish() {
        guard !isSilent, isTerminal else { return }
        print()
        StandardError.write("\n")
    }

    private func print() {
        let line = Self.line(counts.withLock { $0 }, after: ContinuousClock.now - started)
        StandardError.write(isTerminal ? "\r\(line)\u{1B}[K" : "sluice: \(line)\n")
    }

    /// Returns the line: `52,000 rows, 25.1 MiB, 51,200 documents/s, 3 min 20 s left`.
    static func line(_ counts: Counts, after time: Duration) -> String {
        let seconds = max(Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18, 0.001)
        var parts = ["\(grouped(counts.rows)) rows", size(counts.bytes), "\(grouped(Int64(Double(counts.fresh) / seconds))) documents/s"]
        if counts.quarantined > 0 { parts.append("\(grouped(counts.quarantined)) in quarantine") }
        if counts.readBytes > 0, counts.readBytes < counts.totalBytes {
            parts.append("\(timeText(seconds * Double(counts.totalBytes - counts.readBytes) / Double(counts.readBytes))) left")
        } else if counts.readBytes > 0 {
            parts.append("all read")
        }
        return parts.joined(separator: ", ")
    }

    private static func grouped(_ number: Int64) -> String {
        let digits = String(number)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return text
    }

    private static func size(_ bytes: Int64) -> String {
        let tenths = (bytes * 10) >> 20
        return "\(tenths / 10).\(tenths % 10) MiB"
    }

    private static func timeText(_ seconds: Double) -> String {
        let seconds = Int64(min(seconds, 1e9))
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3_600 { return "\(seconds / 60) min \(seconds % 60) s" }
        return "\(seconds / 3_600) h \(seconds / 60 % 60) min"
    }
}
