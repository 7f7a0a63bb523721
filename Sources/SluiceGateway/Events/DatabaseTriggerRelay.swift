package import Logging
package import SluiceCore
package import SluiceIdentity
package import SluicePorts
import SluiceValues

/// Calls the function of a database trigger for the changes in the topic of its class.
///
/// Each change is delivered at least once, and those of an object in order. The gateways share the partitions of the topic, and a stored
/// cursor has the place in each. A call that fails is repeated (`TriggerRetries`), while later changes of the object wait. Then it is
/// given up and stored. A window bounds the records in memory; a partition whose window is full is not read.
package actor DatabaseTriggerRelay {
    package struct Ports: Sendable {
        package var log: any MessageLog
        package var store: any TriggerStore
        package var functions: any AppFunctions
        package var schema: @Sendable () -> AppSchema
        package var metrics: Metrics
        package var environment: any Environment
        package var logger: Logger

        package init(
            log: any MessageLog, store: any TriggerStore, functions: any AppFunctions, schema: @escaping @Sendable () -> AppSchema,
            metrics: Metrics, environment: any Environment, logger: Logger
        ) {
            self.log = log
            self.store = store
            self.functions = functions
            self.schema = schema
            self.metrics = metrics
            self.environment = environment
            self.logger = logger
        }
    }

    /// A call with its partition. The turn tells it from a call of an earlier window of the partition.
    private struct Work {
        var partition: Int32
        var turn: Int64
        var job: TriggerWindow.Job
    }

    /// The maximum number of calls of a trigger that run at the same time on this gateway.
    private static let width = (ordered: 16, unordered: 32)
    /// The intervals of claims with stored cursors, of measurements, and of attempts that are due, in milliseconds.
    private static let interval = (share: UInt64(1_000), lag: UInt64(5_000), due: 200)
    /// The bounds of the pause after a failure, in milliseconds, and the duration of undisturbed work that resets it.
    private static let pause = (shortest: UInt64(100), longest: UInt64(5_000), calm: UInt64(10_000))
    /// The waits of a call beyond the function's bound, and of one whose failure could not be stored, in seconds.
    private static let wait = (bound: 1, store: 5)

    private let trigger: DatabaseTrigger
    private let topic: TriggerTopic
    private let ports: Ports
    private var events: ChangeEventReader?
    private var windows: [Int32: TriggerWindow] = [:]
    /// The cursors as they are stored.
    private var saved: [Int32: TriggerCursor] = [:]
    /// Partitions with a full window, which are not read. All of them while the class is gone.
    private var paused: Set<Int32> = []
    /// `true` from the first record without its class until the class is back.
    private var isClassGone = false
    /// Partitions of which no new record was read since their assignment. Their offset may belong to an earlier log.
    private var fresh: Set<Int32> = []
    /// Partitions beyond the share, which begin no call.
    private var leaving: Set<Int32> = []
    private var running = 0
    private var rotation = 0

    package init(_ trigger: DatabaseTrigger, topic: TriggerTopic, ports: Ports) {
        self.trigger = trigger
        self.topic = topic
        self.ports = ports
    }

    /// Runs until the task is cancelled. Repeats failures with a back-off of at most 5 s.
    package func run() async {
        var pause = Self.pause.shortest
        while !Task.isCancelled {
            let start = now
            do {
                try await ports.log.withReader { try await deliver($0) }
            } catch is CancellationError {
                break
            } catch {
                ports.logger.warning(
                    "A database trigger stopped and is restarted.", metadata: ["trigger": "\(trigger.name)", "error": "\(error)"])
                pause = now - start > Self.pause.calm * 1_000_000 ? Self.pause.shortest : min(pause * 2, Self.pause.longest)
            }
            await leave()
            try? await ports.environment.sleep(nanoseconds: pause * 1_000_000)
        }
        await leave()
    }

    private var now: UInt64 { ports.environment.monotonicNanoseconds() }
    private var width: Int { trigger.isUnordered ? Self.width.unordered : Self.width.ordered }

    private func deliver(_ reader: any LogReader) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            var fetch = LogFetch()
            var (shared, measured): (UInt64?, UInt64?) = (nil, nil)
            while !Task.isCancelled {
                if isDue(&shared, Self.interval.share) { try await share(reader) }
                if isDue(&measured, Self.interval.lag) { await measure() }
                if windows.count > paused.count {
                    fetch = try await reader.next(fetch, milliseconds: Self.interval.due)
                    try await take(fetch, reader)
                } else {
                    try await ports.environment.sleep(nanoseconds: UInt64(Self.interval.due) * 1_000_000)
                }
                try await resume(reader)
                for work in start(width - running) {
                    running += 1
                    group.addTask { await self.work(from: work) }
                }
            }
        }
    }

    /// - Returns: `true` once in each interval.
    private func isDue(_ last: inout UInt64?, _ milliseconds: UInt64) -> Bool {
        let now = now
        if let last, now - last < milliseconds * 1_000_000 { return false }
        last = now
        return true
    }

    // MARK: Partitions

    /// Stores the cursors, gives away the partitions of other gateways, and opens new ones.
    private func share(_ reader: any LogReader) async throws {
        // A partition with a call under way stays, so that no other gateway repeats the call. Taken before the cursors are stored: a call
        // that ends later is not in them.
        let kept = windows.filter { !leaving.contains($0.key) || $0.value.isCalling }
        try await save()
        let claim = try await ports.store.claim(topic, keeping: Set(kept.keys))
        leaving = Set(claim.partitions.sorted().dropFirst(claim.share))
        let gone = Set(windows.keys).subtracting(claim.partitions)
        try await drop(gone, reader)
        let new = claim.partitions.subtracting(windows.keys)
        guard !new.isEmpty else { return }
        let ranges = try await ports.log.ranges(of: new.map { LogPartition(topic.topic, $0) })
        let ends = Dictionary(new.map { ($0, ranges[LogPartition(topic.topic, $0)]?.upperBound ?? 0) }) { first, _ in first }
        let cursors = try await ports.store.open(topic, ends: ends)
        for (partition, cursor) in cursors {
            windows[partition] = TriggerWindow(cursor, isUnordered: trigger.isUnordered)
            saved[partition] = cursor
        }
        try await assign(
            cursors.map { partition, cursor in
                let range = ranges[LogPartition(topic.topic, partition)] ?? 0..<0
                // One record earlier, which shows whether the offset belongs to this log.
                return (partition, cursor.offset > range.upperBound ? range.lowerBound : max(cursor.offset - 1, range.lowerBound))
            }, reader)
    }

    private func assign(_ places: [(partition: Int32, offset: Int64)], _ reader: any LogReader) async throws {
        guard !places.isEmpty else { return }
        fresh.formUnion(places.map(\.partition))
        let offsets = places.map { (LogPartition(topic.topic, $0.partition), $0.offset) }
        try await reader.assign(Dictionary(offsets) { first, _ in first })
    }

    private func drop(_ partitions: Set<Int32>, _ reader: any LogReader) async throws {
        guard !partitions.isEmpty else { return }
        for partition in partitions {
            windows[partition] = nil
            saved[partition] = nil
        }
        paused.subtract(partitions)
        fresh.subtract(partitions)
        try await reader.unassign(partitions.map { LogPartition(topic.topic, $0) })
    }

    /// Stores the cursors that have moved.
    ///
    /// - Throws: `badMessageOrder` if another gateway has opened one.
    private func save() async throws {
        let moved = windows.mapValues(\.cursor).filter { saved[$0.key] != $0.value }
        guard !moved.isEmpty else { return }
        let stored = try await ports.store.save(topic, moved)
        saved.merge(moved.filter { stored.contains($0.key) }) { $1 }
        guard stored.count == moved.count else {
            throw SluiceError(
                .badMessageOrder, "Another gateway has taken over partitions of the trigger '\(trigger.name)'.",
                fix: "Nothing: this gateway claims its share again.")
        }
    }

    /// Stores the cursors as far as possible, and frees the partitions for other gateways.
    private func leave() async {
        // Otherwise the next gateway repeats calls of the last second.
        let last = Task { try await self.save() }  // Unstructured because: this task may be cancelled, which ends its statements.
        _ = await last.result
        (windows, saved) = ([:], [:])
        (paused, fresh, leaving) = ([], [], [])
        ports.metrics.number(.triggerLag, label: trigger.name).set(Double.zero)
        await ports.store.release(topic)
    }

    private func measure() async {
        let partitions = windows.keys.map { LogPartition(topic.topic, $0) }
        guard let ends = try? await ports.log.ends(of: partitions) else { return }
        let lag = ends.reduce(0) { $0 + max($1.value - (windows[$1.key.partition]?.cursor.offset ?? $1.value), 0) }
        ports.metrics.number(.triggerLag, label: trigger.name).set(Double(lag))
    }

    // MARK: Records

    private func take(_ fetch: LogFetch, _ reader: any LogReader) async throws {
        guard let events = eventReader(of: ports.schema()) else { return try await pause(reader) }
        let wasPaused = paused
        var moved: [Int32: Int64] = [:]
        for entry in fetch.entries {
            let partition = entry.partition.partition
            guard let window = windows[partition], !paused.contains(partition), moved[partition] == nil else { continue }
            if window.isFull {
                paused.insert(partition)
            } else if let record = events.read(fetch.arena[entry.value], offset: entry.offset) {
                guard try await isNext(record, in: window, entry.partition, &moved) else { continue }
                add(record, byteCount: entry.value.count, to: partition)
            } else {
                // The next record shows the gap.
                ports.logger.error(
                    "A change record is malformed.", metadata: ["partition": "\(entry.partition)", "offset": "\(entry.offset)"])
            }
        }
        let full = paused.subtracting(wasPaused)
        if !full.isEmpty { try await reader.unassign(full.map { LogPartition(topic.topic, $0) }) }
        try await assign(moved.map { ($0.key, $0.value) }, reader)
        // There is nothing before the beginning.
        fresh.subtract(moved.keys)
    }

    /// Returns the reader of records; nil while the schema has no such class.
    private func eventReader(of schema: AppSchema) -> ChangeEventReader? {
        if events?.version != schema.version { events = ChangeEventReader(schema, type: trigger.type) }
        return events
    }

    /// Stops reading until the class is back.
    private func pause(_ reader: any LogReader) async throws {
        if !isClassGone {
            isClassGone = true
            ports.logger.warning(
                "A database trigger waits, as its class has left the schema. Its changes are kept as long as the topic keeps them.",
                metadata: ["trigger": "\(trigger.name)", "class": "\(trigger.type)"])
        }
        let unread = Set(windows.keys).subtracting(paused)
        paused.formUnion(unread)
        try await reader.unassign(unread.map { LogPartition(topic.topic, $0) })
    }

    /// Compares a record with the records before it.
    ///
    /// - Parameter moved: Receives the first offset of a partition that has to be read from its beginning: the stored offset may belong to
    ///   an earlier log.
    /// - Returns: `true` for a record that was not read before.
    private func isNext(
        _ record: ChangeEventReader.Record, in window: TriggerWindow, _ partition: LogPartition, _ moved: inout [Int32: Int64]
    ) async throws -> Bool {
        let isFresh = fresh.contains(partition.partition)
        switch window.verdict(on: record.place) {
        case .known: return false
        case .next: break
        case .gap(let after):
            let first = isFresh ? try await ports.log.ranges(of: [partition])[partition]?.lowerBound : nil
            if let first, record.place.offset > first {
                moved[partition.partition] = first
                return false
            }
            note(
                loss: "The log lost changes before a database trigger had received them.", partition.partition,
                ["after": "\(after)", "before": "\(record.place.position)"])
        }
        fresh.remove(partition.partition)
        return true
    }

    private func add(_ record: ChangeEventReader.Record, byteCount: Int, to partition: Int32) {
        if record.isIncomplete {
            note(
                loss: "The rows of a change are not in the log, as they exceed its bound or do not fit their class.", partition,
                ["position": "\(record.place.position)"])
        }
        windows[partition]?.add(
            record.place, key: record.key, call: record.event.flatMap { trigger.call(for: $0) }, byteCount: byteCount)
    }

    private func note(loss message: Logger.Message, _ partition: Int32, _ details: Logger.Metadata) {
        let place: Logger.Metadata = [
            "trigger": "\(trigger.name)", "partition": "\(LogPartition(topic.topic, partition))",
            "code": "\(ErrorCode.logGap.rawValue)",
        ]
        ports.logger.warning(message, metadata: place.merging(details) { $1 })
        ports.metrics.number(.triggerLosses, label: trigger.name).add()
    }

    /// Reads the paused partitions with room again.
    private func resume(_ reader: any LogReader) async throws {
        guard !paused.isEmpty, eventReader(of: ports.schema()) != nil else { return }
        isClassGone = false
        let places = paused.compactMap { partition in
            windows[partition].flatMap { $0.hasRoom ? (partition: partition, offset: $0.nextOffset) : nil }
        }
        paused.subtract(places.map(\.partition))
        try await assign(places, reader)
    }

    // MARK: Calls

    /// Takes calls that may begin, from each partition in turn.
    private func start(_ limit: Int) -> [Work] {
        var works: [Work] = []
        let partitions = windows.keys.filter { !leaving.contains($0) }.sorted()
        guard limit > 0, !partitions.isEmpty else { return [] }
        rotation += 1
        let (first, now) = (rotation % partitions.count, now)
        for partition in partitions[first...] + partitions[..<first] where works.count < limit {
            guard let turn = windows[partition]?.cursor.turn else { continue }
            let jobs = windows[partition]?.start(limit - works.count, now: now) ?? []
            works += jobs.map { Work(partition: partition, turn: turn, job: $0) }
        }
        return works
    }

    /// Makes a call, and then others as long as some wait.
    private func work(from first: Work) async {
        var next: Work? = first
        while let work = next {
            await call(work)
            next = Task.isCancelled ? nil : start(1).first
        }
        running -= 1
    }

    private func call(_ work: Work) async {
        ports.metrics.number(.triggerCalls, label: trigger.name).add()
        do throws(SluiceError) {
            _ = try await ports.functions.call(work.job.call)
            change(work) { $0.finish(work.job.offset) }
        } catch {
            // The gateway ends. Another one repeats the call.
            if Task.isCancelled { return }
            ports.metrics.number(.triggerFailures, label: trigger.name).add()
            await failed(work, error)
        }
    }

    private func failed(_ work: Work, _ error: SluiceError) async {
        // The service has not seen the call.
        if error.code == .tooManyRequests { return postpone(work, failed: work.job.failed, seconds: Self.wait.bound) }
        let failed = work.job.failed + 1
        if let wait = TriggerRetries.wait(failed: failed) { return postpone(work, failed: failed, seconds: wait) }
        do {
            try await ports.store.bury(
                TriggerFailure(
                    trigger: trigger.name, attempts: failed, reason: error.operatorText, event: work.job.call.arguments.first ?? .null))
        } catch {
            ports.logger.warning(
                "A failure of a trigger could not be stored. Its function is called again.",
                metadata: ["trigger": "\(trigger.name)", "error": "\(error)"])
            return postpone(work, failed: work.job.failed, seconds: Self.wait.store)
        }
        ports.logger.error(
            "A trigger is given up. The table sluice.trigger_failure has its event.",
            metadata: [
                "trigger": "\(trigger.name)", "call": "\(work.job.call.id ?? "")", "attempts": "\(failed)",
                "error": .string(error.description),
            ])
        ports.metrics.number(.triggersBuried, label: trigger.name).add()
        change(work) { $0.finish(work.job.offset) }
    }

    private func postpone(_ work: Work, failed: Int, seconds: Int) {
        let until = now + UInt64(seconds) * 1_000_000_000
        change(work) { $0.postpone(work.job.offset, failed: failed, until: until) }
    }

    /// Changes the window of a call, unless the partition is another gateway's by now.
    private func change(_ work: Work, _ body: (inout TriggerWindow) -> Void) {
        guard var window = windows[work.partition], window.cursor.turn == work.turn else { return }
        windows[work.partition] = nil
        body(&window)
        windows[work.partition] = window
    }
}
