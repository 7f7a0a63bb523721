import SluiceCore
import SluicePorts
import SluiceWire
import Testing

@testable import SluicePipeline

/// A state of the machine in which the table gives every input.
private enum Situation: String, CaseIterable {
    case awaiting, authenticated, opening
    /// Open, without a view.
    case idle
    case bootstrapping, live, searching
    /// A cancelled bootstrap, which another view follows.
    case stopping
    /// The rules are unavailable.
    case asking
    case closed

    var machine: SessionMachine {
        var machine = SessionMachine()
        for input in inputs { _ = machine.handle(input) }
        return machine
    }

    private var inputs: [SessionInput] {
        switch self {
        case .awaiting: []
        case .authenticated: [.received(.refreshToken)]
        case .opening: [.received(.hello)]
        case .idle: Situation.opening.inputs + [.opened(changeset: 5)]
        case .bootstrapping: Situation.idle.inputs + [.accepted(.version(1), .version(1))]
        case .live: Situation.bootstrapping.inputs + [.live(number: 1, .version(1)), .workEnded(number: 1, .done, isStale: false)]
        case .searching: Situation.live.inputs + [.membersChanged(isStale: true)]
        case .stopping: Situation.live.inputs + [.accepted(.version(2), .version(2)), .accepted(.version(3), .version(3))]
        case .asking: Situation.live.inputs + [.rulesFailed(SluiceError(.pluginFailed, "away"))]
        case .closed: Situation.live.inputs + [.failed(SluiceError(.timeout, "late"))]
        }
    }
}

extension View {
    static func version(_ version: UInt64) -> View { View(version: version, types: [], partitions: []) }
}

extension SubscriptionSet {
    static func version(_ version: UInt64) -> SubscriptionSet {
        var message = PBSubscribe()
        message.version = version
        // A set without pending objects breaks no limit.
        return (try? SubscriptionSet(message)) ?? SubscriptionSet()
    }
}

extension SessionMachine {
    /// The name of the state, as in the table.
    fileprivate var situation: String {
        switch phase {
        case .awaitingHello: "awaiting"
        case .authenticated: "authenticated"
        case .opening: "opening"
        case .closed: "closed"
        case .open:
            switch views.work {
            case _ where isAsking: "asking"
            case .none: views.isInStep ? "live" : "idle"
            case .bootstrapping: "bootstrapping"
            case .searching: "searching"
            case .stopping(_, .some): "stopping"
            case .stopping(_, nil): "ending"
            }
        }
    }
}

extension SessionEffect {
    fileprivate var text: String {
        switch self {
        case .flush: "flush"
        case .takeBatches: "take"
        case .answerBarriers: "answer"
        case .bootstrap(let number, _): "bootstrap \(number)"
        case .search(let number): "search \(number)"
        case .cancelWork: "cancel"
        case .askRules(let number, _): "ask \(number)"
        case .end(let error): "end \(error.code)"
        }
    }
}

/// One row of the table: an input, and for each situation the effects and, after an arrow, the next situation if it is another one.
private struct Row: Sendable {
    var name: String
    /// Some inputs carry the number of the running task, or of the question.
    var input: @Sendable (SessionMachine) -> SessionInput
    /// In the order of the situations. `-`: neither an effect nor another situation.
    var cells: [String]

    init(_ name: String, _ cells: String, _ input: @escaping @Sendable (SessionMachine) -> SessionInput) {
        self.name = name
        self.cells = cells.split(separator: " | ").map { String($0) }
        self.input = input
    }
}

@Suite struct `The session machine` {
    private static let plugin = SluiceError(.pluginFailed, "away")
    private static let query = SluiceError(.querySyntax, "no query")
    private static let nothing = "- | - | - | - | - | - | - | - | - | -"
    private static let order = "end badMessageOrder > closed"
    /// Of a message that only an open session takes.
    private static let afterHello = "\(order) | \(order) | \(order) | - | - | - | - | - | - | -"
    /// Of an input to parts that every session from Hello on has.
    private static func open(_ effect: String) -> String {
        "- | - | \(effect) | \(effect) | \(effect) | \(effect) | \(effect) | \(effect) | \(effect) | -"
    }
    /// Of the end of a task that no error makes the last.
    private static func ended(_ bootstrapping: String, _ searching: String) -> String {
        "- | - | - | - | \(bootstrapping) | - | \(searching) | bootstrap 3 > bootstrapping | - | -"
    }

    /// awaiting | authenticated | opening | idle | bootstrapping | live | searching | stopping | asking | closed
    private static var table: [Row] { messages + rules + parts + tasks }

    private static let parts: [Row] = [
        Row("opened", "- | - | > idle | - | - | - | - | - | - | -") { _ in .opened(changeset: 5) },
        Row("requested", nothing) { _ in .requested(version: 9) },
        Row("requested again", "- | - | - | \(order) | \(order) | \(order) | \(order) | \(order) | \(order) | -") { _ in
            .requested(version: 0)
        },
        Row(
            "accepted",
            "- | - | - | bootstrap 1 > bootstrapping | cancel > stopping | bootstrap 2 > bootstrapping | cancel > stopping | - | - | -"
        ) { _ in .accepted(.version(9), .version(9)) },
        Row("committed", open("flush")) { _ in .committed(Acknowledgement(changeset: 6, lsn: .zero, isCommit: true)) },
        Row("ingest", open("take")) { _ in .ingest(WaitingBatch(number: 1, objects: [])) },
        Row("barrier", open("answer")) { _ in .barrier(1) },
    ]

    private static let tasks: [Row] = [
        Row("stop", "- | - | - | - | cancel > ending | - | cancel > ending | > ending | - | -") { _ in .stop },
        Row("ending", nothing) { .ending(number: $0.views.number ?? 1, .version(9)) },
        Row("live", nothing) { .live(number: $0.views.number ?? 1, .version(9)) },
        Row("bootstrap failed", nothing) { .bootstrapFailed(number: $0.views.number ?? 1) },
        Row("ended", ended("> idle", "> live")) { .workEnded(number: $0.views.number ?? 1, .done, isStale: false) },
        Row("ended, stale", ended("search 2 > searching", "search 3")) {
            .workEnded(number: $0.views.number ?? 1, .done, isStale: true)
        },
        Row("ended, searched", ended("> idle", "> live")) {
            .workEnded(number: $0.views.number ?? 1, .searched(2), isStale: false)
        },
        Row("ended, another one", nothing) { .workEnded(number: ($0.views.number ?? 1) + 7, .done, isStale: true) },
        Row("ended, failed", ended("end resync > closed", "end resync > closed")) {
            .workEnded(number: $0.views.number ?? 1, .bootstrapFailed(SluiceError(.resync, "again")), isStale: true)
        },
        Row("ended, no query any more", ended("end resync > closed", "end resync > closed")) {
            .workEnded(number: $0.views.number ?? 1, .searchFailed(query), isStale: true)
        },
        Row(
            "ended, without the rules",
            "- | - | - | - | ask 1, cancel > asking | - | ask 1, cancel > asking | ask 1 > asking | - | -"
        ) { .workEnded(number: $0.views.number ?? 1, .searchFailed(plugin), isStale: true) },
        Row("members changed", "- | - | - | search 1 > searching | - | search 2 > searching | - | - | - | -") { _ in
            .membersChanged(isStale: true)
        },
        Row("members as before", nothing) { _ in .membersChanged(isStale: false) },
        Row("failed", Array(repeating: "end timeout > closed", count: 9).joined(separator: " | ") + " | -") { _ in
            .failed(SluiceError(.timeout, "late"))
        },
        Row(
            "disconnected",
            "> closed | > closed | > closed | > closed | cancel > closed | > closed | cancel > closed | > closed | > closed | -"
        ) { _ in .disconnected },
    ]

    private static let messages: [Row] = [
        Row(
            "hello", "> opening | > opening | \(order) | \(order) | \(order) | \(order) | \(order) | \(order) | \(order) | -"
        ) { _ in .received(.hello) },
        Row("refresh token", "> authenticated | \(order) | \(order) | - | - | - | - | - | - | -") { _ in .received(.refreshToken) },
        Row("subscribe", afterHello) { _ in .received(.subscribe) },
        Row("upload", afterHello) { _ in .received(.upload) },
        Row("ingest message", afterHello) { _ in .received(.ingest) },
        Row("mark", afterHello) { _ in .received(.mark) },
        Row("report error", afterHello) { _ in .received(.reportError) },
    ]

    private static let rules: [Row] = [
        Row("rules changed", nothing) { _ in .rulesChanged },
        Row(
            "replace",
            "- | - | - | bootstrap 1 > bootstrapping | cancel > stopping | bootstrap 2 > bootstrapping | cancel > stopping | - | - | -"
        ) { _ in .replace(.version(9)) },
        Row(
            "rules failed",
            "- | - | ask 1 | ask 1 > asking | ask 1, cancel > asking | ask 1 > asking | ask 1, cancel > asking | ask 1 > asking | - | -"
        ) { _ in .rulesFailed(plugin) },
        Row(
            "rules refused", "- | - | " + Array(repeating: "end resync > closed", count: 6).joined(separator: " | ") + " | - | -"
        ) { _ in .rulesRefused(query) },
        Row("answered", "- | - | - | - | - | - | - | - | bootstrap 2 > bootstrapping | -") {
            .answered(question: $0.rules.question, .version(9))
        },
        Row("answered, an older question", nothing) { .answered(question: $0.rules.question &- 1, .version(9)) },
        Row("answer refused", "- | - | - | - | - | - | - | - | end resync > closed | -") {
            .answerRefused(question: $0.rules.question, query)
        },
        Row("answer refused, an older question", nothing) { .answerRefused(question: $0.rules.question &- 1, query) },
        Row("asking ended", "- | - | - | - | - | - | - | - | > closed | -") { _ in .askingEnded(number: 1) },
        Row("asking ended, another one", nothing) { _ in .askingEnded(number: 2) },
    ]

    @Test func `starts from the situations of the table`() {
        for situation in Situation.allCases { #expect(situation.machine.situation == situation.rawValue) }
    }

    @Test func `does with each input in each situation what the table says`() {
        for row in Self.table {
            #expect(row.cells.count == Situation.allCases.count, "\(row.name)")
            for (situation, cell) in zip(Situation.allCases, row.cells) {
                var machine = situation.machine
                let effects = machine.handle(row.input(machine)).map(\.text).joined(separator: ", ")
                let next = machine.situation == situation.rawValue ? "" : "> \(machine.situation)"
                let text = [effects, next].filter { !$0.isEmpty }.joined(separator: " ")
                #expect((text.isEmpty ? "-" : text) == cell, "\(row.name), \(situation)")
            }
        }
    }

    /// A new input has no row until it is named here, which the compiler demands.
    @Test func `has a row for each input and for each kind of message`() {
        let machine = Situation.live.machine
        let inputs = Self.table.map { $0.input(machine) }
        #expect(Set(inputs.map(Self.kind)) == Set(0..<21))
        let kinds = inputs.compactMap { if case .received(let kind) = $0 { kind } else { nil } }
        #expect(Set(kinds) == Set(ClientMessageKind.allCases))
    }

    private static func kind(_ input: SessionInput) -> Int {
        switch input {
        case .received: 0
        case .opened: 1
        case .requested: 2
        case .accepted: 3
        case .committed: 4
        case .ingest: 5
        case .barrier: 6
        case .rulesChanged: 7
        case .replace: 8
        case .rulesFailed: 9
        case .rulesRefused: 10
        case .answered: 11
        case .answerRefused: 12
        case .askingEnded: 13
        case .stop: 14
        case .ending, .live: 15
        case .bootstrapFailed: 16
        case .workEnded: 17
        case .membersChanged: 18
        case .failed: 19
        case .disconnected: 20
        }
    }
}

@Suite struct `The parts of a session machine` {
    private static func commit(_ number: UInt64, isCommit: Bool = true, isRejected: Bool = false) -> SessionInput {
        .committed(Acknowledgement(changeset: number, lsn: .zero, isCommit: isCommit, compensation: isRejected ? [1] : nil))
    }

    @Test func `take no subscription version beyond the numbers of databases`() {
        var machine = Situation.idle.machine
        let last = machine.handle(.requested(version: 1 << 63 - 1))
        #expect(last.isEmpty)
        let beyond = machine.handle(.requested(version: 1 << 63)).map(\.text)
        #expect(beyond == ["end badSyntax"])
    }

    @Test func `recognise a changeset that is sent again and one that is missing`() throws {
        var machine = Situation.idle.machine
        let again = try machine.take(changeset: 5)
        let next = try machine.take(changeset: 6)
        #expect(!again)
        #expect(next)
        #expect(performing: { try machine.take(changeset: 8) }, throws: { ($0 as? SluiceError)?.code == .badClientFile })
        var increasing = UploadState(.increasing)
        increasing.begin(changeset: 5)
        let taken = try [8, 8, 7, 30].map { try increasing.take(changeset: $0) }
        #expect(taken == [true, false, false, true])
    }

    @Test func `let the client drop no changeset whose compensating write is unsent`() {
        var machine = Situation.idle.machine
        _ = machine.handle(Self.commit(6))
        #expect(machine.uploads.told == 6)
        _ = machine.handle(Self.commit(7, isRejected: true))
        let first = machine.nextFlush().map(\.changeset)
        #expect(first == [6, 7])
        _ = machine.handle(Self.commit(8, isRejected: true))
        #expect(machine.uploads.told == 6)
        machine.compensationsSent()
        #expect(machine.uploads.told == 7)
        let second = machine.nextFlush().map(\.changeset)
        #expect(second == [8])
        machine.compensationsSent()
        let third = machine.nextFlush()
        #expect(machine.uploads.told == 8 && third.isEmpty)
        let again = machine.handle(Self.commit(8, isCommit: false)).map(\.text)
        #expect(again == ["flush"])
    }

    @Test func `keep a position until a view is live`() {
        var machine = Situation.bootstrapping.machine
        machine.deferAnnouncement(of: AwaitedPosition(lsn: LSN(rawValue: 7), isCommit: true))
        machine.deferAnnouncement(of: AwaitedPosition(lsn: LSN(rawValue: 5), isCommit: false))
        let before = machine.takeDeferred()
        #expect(before == nil)
        _ = machine.handle(.live(number: 1, .version(1)))
        let (first, second) = (machine.takeDeferred(), machine.takeDeferred())
        #expect(first == AwaitedPosition(lsn: LSN(rawValue: 7), isCommit: false) && second == nil)
    }

    @Test func `judge writes by the new view from just before the client knows it, and by the old one after a failure`() {
        var machine = Situation.stopping.machine
        #expect(machine.views.known.version == 1)
        _ = machine.handle(.ending(number: 2, .version(2)))
        #expect(machine.views.known.version == 2 && machine.views.live.version == 1)
        _ = machine.handle(.bootstrapFailed(number: 2))
        #expect(machine.views.known.version == 1)
    }

    @Test func `are settled by a search that begins after the question`() {
        var machine = Situation.searching.machine
        let first = machine.beginReading()
        let since = machine.views.generation
        _ = machine.handle(.workEnded(number: 2, .searched(first), isStale: true))
        #expect(!machine.views.isSettled(since: since, isStale: true))
        let second = machine.beginReading()
        _ = machine.handle(.workEnded(number: machine.views.number ?? 0, .searched(second), isStale: true))
        #expect(machine.views.isSettled(since: since, isStale: true) && machine.views.isWorking)
    }
}
