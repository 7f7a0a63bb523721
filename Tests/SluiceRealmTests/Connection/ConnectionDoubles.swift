import SluiceCore
import SluicePorts
import Synchronization

@testable import SluiceRealm

/// A call that waits for the answer of a test.
final class HeldCall: Sendable {
    private struct State {
        var result: Result<Void, any Error>?
        var continuation: CheckedContinuation<Void, any Error>?
    }

    let name: String
    private let state = Mutex(State())
    private let isStubborn: Bool

    init(_ name: String, isStubborn: Bool) { (self.name, self.isStubborn) = (name, isStubborn) }

    /// Answers the call, unless it has an answer.
    func answer(_ result: Result<Void, any Error> = .success(())) {
        let continuation = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            guard state.result == nil else { return nil }
            state.result = result
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume(with: result)
    }

    func wait() async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let known = state.withLock { state in
                    if state.result == nil { state.continuation = continuation }
                    return state.result
                }
                if let known { continuation.resume(with: known) }
            }
        } onCancel: {
            if !isStubborn { answer(.failure(CancellationError())) }
        }
    }
}

/// The calls of all doubles and the messages to the client, in order.
final class Journal: Sendable {
    private struct State {
        var lines: [String] = []
        /// The lines that a test has read.
        var read = 0
        var waiting: [(line: String, continuation: CheckedContinuation<Void, Never>)] = []
        var holds: [String: Bool] = [:]
        var failures: [String: SluiceError] = [:]
    }

    private let state = Mutex(State())
    private let calls: AsyncStream<HeldCall>
    private let caller: AsyncStream<HeldCall>.Continuation

    init() { (calls, caller) = AsyncStream.makeStream(of: HeldCall.self, bufferingPolicy: .bufferingOldest(64)) }

    /// Holds the calls of a name until the test answers them.
    func hold(_ name: String, isStubborn: Bool = false) { state.withLock { $0.holds[name] = isStubborn } }

    func fail(_ name: String, _ error: SluiceError) { state.withLock { $0.failures[name] = error } }

    func isHolding(_ name: String) -> Bool { state.withLock { $0.holds[name] != nil } }

    /// Returns the next call that is held.
    func held() async -> HeldCall? {
        var iterator = calls.makeAsyncIterator()
        return await iterator.next()
    }

    func add(_ line: String) {
        let woken = state.withLock { state in
            state.lines.append(line)
            let woken = state.waiting.filter { $0.line == line }
            state.waiting.removeAll { $0.line == line }
            return woken
        }
        for waiter in woken { waiter.continuation.resume() }
    }

    /// Records a call once it has succeeded.
    func call(_ name: String) async throws {
        let (hold, failure) = state.withLock { ($0.holds[name], $0.failures[name]) }
        if let failure {
            add("fail \(name)")
            throw failure
        }
        if let hold {
            let call = HeldCall(name, isStubborn: hold)
            caller.yield(call)
            try await call.wait()
        }
        add(name)
    }

    /// The lines that the test has not read.
    var rest: [String] { state.withLock { Array($0.lines[$0.read...]) } }

    /// Waits for a line that was not read, and reads up to it.
    func through(_ line: String) async -> [String] {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.lines[state.read...].contains(line) { return true }
                state.waiting.append((line, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
        return state.withLock { state in
            let start = state.read
            state.read = (state.lines[start...].firstIndex(of: line) ?? start) + 1
            return Array(state.lines[start..<state.read])
        }
    }
}

/// A clock that the test moves. A sleep ends when its time has come.
final class ManualTime: Environment {
    private struct State {
        var now: UInt64 = 0
        var last: UInt64 = 0
        var sleeping: [UInt64: (due: UInt64, call: HeldCall)] = [:]
        /// The number of sleeps by their duration.
        var begun: [UInt64: Int] = [:]
        var waiting: [(duration: UInt64, times: Int, continuation: CheckedContinuation<Void, Never>)] = []

        mutating func begin(_ duration: UInt64) -> [CheckedContinuation<Void, Never>] {
            begun[duration, default: 0] += 1
            let times = begun[duration] ?? 0
            let woken = waiting.filter { $0.duration == duration && $0.times <= times }
            waiting.removeAll { $0.duration == duration && $0.times <= times }
            return woken.map(\.continuation)
        }
    }

    private let state = Mutex(State())

    func wallMilliseconds() -> Int64 { Int64(monotonicNanoseconds() / 1_000_000) }
    func monotonicNanoseconds() -> UInt64 { state.withLock { $0.now } }
    func random() -> UInt64 { 4 }

    func sleep(nanoseconds: UInt64) async throws {
        let call = HeldCall("sleep", isStubborn: false)
        let (id, woken) = state.withLock { state in
            state.last += 1
            state.sleeping[state.last] = (state.now + nanoseconds, call)
            return (state.last, state.begin(nanoseconds))
        }
        for waiter in woken { waiter.resume() }
        defer { state.withLock { _ = $0.sleeping.removeValue(forKey: id) } }
        try await call.wait()
    }

    /// Waits until sleeps of this duration have begun so many times.
    func untilSleeping(milliseconds: Int, times: Int = 1) async {
        let duration = UInt64(milliseconds) * 1_000_000
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.begun[duration, default: 0] >= times { return true }
                state.waiting.append((duration, times, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Moves the clock and ends the sleeps that are due.
    func pass(milliseconds: Int) {
        let due = state.withLock { state in
            state.now += UInt64(milliseconds) * 1_000_000
            let now = state.now
            return state.sleeping.values.filter { $0.due <= now }.map(\.call)
        }
        for call in due { call.answer() }
    }
}

/// A store that records its calls and knows every file.
struct JournalStore: RealmClientStore {
    let journal: Journal
    /// The record of a file that is opened.
    var record = RealmClientRecord(file: ConnectionFixture.file)
    var entries: [RealmStreamEntry] = []

    func allot(user: String) async throws -> RealmFileIdent {
        try await journal.call("allot")
        return ConnectionFixture.file
    }

    func open(_ file: RealmFileIdent, user: String) async throws -> StoredRealmClient {
        try await journal.call("open \(file.ident)")
        var record = record
        record.file = file
        return StoredRealmClient(record: record, entries: entries, sessionNumber: 1)
    }

    func append(_ entries: [RealmStreamEntry], to session: RealmFileSession) async throws {
        try await journal.call("append \(entries.map(\.serverVersion)) to \(session.file)")
    }

    func confirmed(upTo serverVersion: UInt64, of session: RealmFileSession) { journal.add("drop \(serverVersion)") }

    func record(_ progress: RealmUploadProgress, of session: RealmFileSession) async throws {
        try await journal.call("record \(progress.clientVersion)")
    }

    func beginBootstrap(queryVersion: UInt64, of session: RealmFileSession) async throws {
        try await journal.call("begin \(queryVersion)")
    }

    func completeBootstrap(_ view: RealmClientRecord.View, of session: RealmFileSession) async throws {
        try await journal.call("view \(view.queryVersion) at \(view.serverVersion)")
    }

    func cancelBootstrap(of session: RealmFileSession) async throws { try await journal.call("cancel") }
    func keep(replica: [UInt8], ofView view: UInt64, of session: RealmFileSession) async throws { try await journal.call("keep") }
    func lose(_ session: RealmFileSession) async throws { try await journal.call("lose") }
}

/// Views whose events the test yields.
final class JournalViews: RealmViews {
    let journal: Journal
    private let newest: UInt64
    private let confirms: Bool
    private let opened: AsyncStream<JournalView>
    private let opener: AsyncStream<JournalView>.Continuation

    /// - Parameter confirms: `true` if the views need no upload for a confirmation.
    init(_ journal: Journal, newest: UInt64, confirms: Bool) {
        (self.journal, self.newest, self.confirms) = (journal, newest, confirms)
        (opened, opener) = AsyncStream.makeStream(of: JournalView.self, bufferingPolicy: .bufferingOldest(16))
    }

    func open(
        _ client: RealmViewClient, for connection: any Actor, wake: @escaping @Sendable () -> Void,
        keep: @escaping @Sendable ([UInt8], UInt64) async throws -> Void
    ) async throws -> any RealmClientView {
        try await journal.call("views \(client.stored.record.file.ident)")
        let view = JournalView(journal, newest: newest, confirms: confirms, wake: wake)
        opener.yield(view)
        return view
    }

    /// Returns the next view that was opened.
    func next() async -> JournalView? {
        var iterator = opened.makeAsyncIterator()
        return await iterator.next()
    }
}

final class JournalView: RealmClientView {
    let journal: Journal
    private let events = Mutex((waiting: [RealmViewEvent](), isClosed: false))
    private let wake: @Sendable () -> Void
    let newest: UInt64
    let clientVersion: UInt64 = 0
    private let confirms: Bool

    init(_ journal: Journal, newest: UInt64, confirms: Bool, wake: @escaping @Sendable () -> Void) {
        (self.journal, self.newest, self.confirms, self.wake) = (journal, newest, confirms, wake)
    }

    func yield(_ event: RealmViewEvent) {
        events.withLock { $0.waiting.append(event) }
        wake()
    }

    func heldObjects() async throws -> [OutgoingOperation.Object] { [ConnectionFixture.task] }

    func build(_ request: RealmViewRequest) {
        journal.add("build \(request.query.version)\(request.isFull ? " full" : "")\(request.hasSchema ? " schema" : "")")
    }

    func repeated(_ entries: [RealmUploadEntry]) { journal.add("repeated \(entries.map(\.clientVersion))") }

    func expectUpload() {}

    func confirm(_ version: UInt64) -> Bool {
        if confirms { journal.add("confirm \(version)") }
        return confirms
    }

    func supersede(queryVersion: UInt64) { journal.add("supersede \(queryVersion)") }

    func next() async throws -> RealmViewEvent? {
        let (event, isClosed) = events.withLock { ($0.waiting.isEmpty ? nil : $0.waiting.removeFirst(), $0.isClosed) }
        if event == nil, isClosed { throw SluiceError(.shuttingDown, "The views of a file have ended.") }
        return event
    }

    func nextNow(isTaken: Bool) throws -> RealmReadyEvent {
        events.withLock { events in
            switch events.waiting.first {
            case nil: return events.isClosed ? .later : .none
            case .part, .integrated: return .later
            case .changes, .refused, .advanced, .permissionsChanged: return .event(events.waiting.removeFirst())
            }
        }
    }

    func newestVersion() async throws -> UInt64 {
        try await journal.call("newest")
        return newest
    }

    func close() {
        events.withLock { $0.isClosed = true }
        wake()
        journal.add("close view")
    }
}

/// Writes that take effect at the versions that the test gives.
struct JournalWrites: RealmWrites {
    let journal: Journal
    /// The server version of the upload of a client version.
    var versions: [UInt64: UInt64] = [:]
    var rejected: [RealmRejectedUpdate] = []
    /// The changeset before the last one of each upload.
    var previous: UInt64 = 0

    func integrate(_ upload: RealmUploadMessage, of session: RealmFileSession, user: String) async throws -> RealmWriteResult {
        let version = upload.progress.clientVersion
        try await journal.call("integrate \(version)")
        return RealmWriteResult(
            integrated: RealmIntegratedUpload(clientVersion: version, serverVersion: versions[version] ?? 2), rejected: rejected,
            previous: previous)
    }
}

/// A socket that records the messages to the client.
final class JournalSink: RealmFrameSink {
    let journal: Journal
    private let codec = RealmCodec(compression: RunLengthCompression())

    init(_ journal: Journal) { self.journal = journal }

    func send(_ message: [UInt8]) {
        do {
            let message = try codec.decodeServer(message)
            journal.add("\(message.session): \(RealmConnectionAction.send(message).text)")
        } catch {
            journal.add("undecodable \(error)")
        }
    }

    func perform(_ body: @escaping @Sendable () -> Void) -> Bool {
        body()
        return true
    }

    var bufferedBytes: Int { journal.isHolding("drain") ? .max : 0 }
    func drained(below bytes: Int) async { try? await journal.drained() }
    func pauseReading() { journal.add("pause") }
    func resumeReading() { journal.add("resume") }
    func close(_ reason: RealmCloseReason, _ text: String) { journal.add("close \(reason.code.rawValue)") }
    func ended() {}
}

extension Journal {
    /// Waits while a test holds `drain`. The line is not recorded.
    fileprivate func drained() async throws {
        guard isHolding("drain") else { return }
        let call = HeldCall("drain", isStubborn: false)
        caller.yield(call)
        try await call.wait()
    }
}

/// Counts metrics.
final class CountingObserver: RealmConnectionObserver {
    struct Counts: Equatable {
        var sessions = 0
        var received = 0
        var sent = 0
        var bytesIn = 0
        var bytesOut = 0
        var errors: [RealmErrorCode] = []
        var uploads: [Int] = []
        var defects = 0
        var reports = 0
    }

    private let state = Mutex(Counts())
    var counts: Counts { state.withLock(\.self) }

    func sessions(_ change: Int) { state.withLock { $0.sessions += change } }
    func received(bytes: Int) {
        state.withLock {
            $0.received += 1
            $0.bytesIn += bytes
        }
    }
    func sent(bytes: Int) {
        state.withLock {
            $0.sent += 1
            $0.bytesOut += bytes
        }
    }
    func failed(_ code: RealmErrorCode) { state.withLock { $0.errors.append(code) } }
    func integrated(rejected: Int) { state.withLock { $0.uploads.append(rejected) } }
    func defect() { state.withLock { $0.defects += 1 } }
    func clientFailed() { state.withLock { $0.reports += 1 } }
}
