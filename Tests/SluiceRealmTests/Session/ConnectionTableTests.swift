import SluiceCore
import SluicePorts
import Testing

@testable import SluiceRealm

/// The situations of session 1, in the order of the table's cells.
private enum Situation: String, CaseIterable {
    case unbound, allotting, bound, opening, bootstrapping, steady, ended, closed

    var machine: RealmConnectionMachine {
        var fixture = ConnectionFixture()
        for input in inputs(fixture.id) { _ = fixture.feed(input) }
        return fixture.machine
    }

    private func inputs(_ id: RealmSessionID) -> [RealmConnectionInput] {
        let bind = RealmConnectionInput.received(ConnectionFixture.bind(needsFileIdent: true))
        let bound = [bind, .allotted(id, ConnectionFixture.file)]
        let opening = bound + [.received(ConnectionFixture.ident())]
        let bootstrapping = opening + [.opened(id, ConnectionFixture.fresh(), newest: 2)]
        return switch self {
        case .unbound: []
        case .allotting: [bind]
        case .bound: bound
        case .opening: opening
        case .bootstrapping: bootstrapping
        case .steady: bootstrapping + [.bootstrap(id, ConnectionFixture.part(0, at: 2))]
        case .ended: bootstrapping + [.failed(id, SluiceError(.timeout, "late"))]
        case .closed: bootstrapping + [.disconnected]
        }
    }
}

extension RealmConnectionMachine {
    fileprivate var situation: String { isClosed ? "closed" : sessions[1]?.phase.rawValue ?? "unbound" }
}

/// One row of the table: an input, and for each situation the actions and, after an arrow, the next situation if it is another one.
private struct Row: Sendable {
    var name: String
    var input: RealmConnectionInput
    /// In the order of the situations. `-`: neither an action nor another situation.
    var cells: [String]

    init(_ name: String, _ input: RealmConnectionInput, _ cells: String...) { self.init(name, input, cells) }

    init(_ name: String, _ input: RealmConnectionInput, _ cells: [String]) {
        (self.name, self.input, self.cells) = (name, input, cells)
    }
}

@Suite struct `The connection machine` {
    private static let id = RealmSessionID(session: 1, generation: 1)
    private static let none = [String](repeating: "-", count: 8)

    /// The connection's end: the error, if any, precedes the releases, and the close follows them.
    private static func close(_ code: Int, _ error: String? = nil) -> [String] {
        let releases = ["", "release nothing, ", "release nothing, ", "release nothing, ", "release, ", "release, ", ""]
        return releases.map { "\(error.map { "error \($0) Transient, " } ?? "")\($0)close \(code) > closed" } + ["-"]
    }

    /// A message that is out of order or unknown in some situations ends the connection there.
    private static func message(_ cells: String...) -> [String] {
        zip(cells, 0...).map { cell, place in Int(cell) == nil ? cell : close(1011, cell)[place] }
    }

    /// The end of a session alone.
    private static func end(_ error: String, first: String = "") -> [String] {
        let texts = ["release nothing", "release nothing", "release nothing", "release", "release"].map {
            "\(first)error \(error), \($0) > ended"
        }
        return ["-"] + texts + ["-", "-"]
    }

    private static func only(_ situation: Situation, _ cell: String, and other: (Situation, String)? = nil) -> [String] {
        Situation.allCases.map { $0 == situation ? cell : $0 == other?.0 ? other?.1 ?? "-" : "-" }
    }

    /// unbound | allotting | bound | opening | bootstrapping | steady | ended | closed
    private static var table: [Row] { messages + results + events }

    private static let schemaReport =
        "Failed to transform received changeset: Schema mismatch: Property 'a' in class 'B' is nullable on one side and not on the other."

    private static let messages: [Row] = [
        Row(
            "bind", .received(ConnectionFixture.bind(needsFileIdent: true)),
            message("allot > allotting", "107", "107", "107", "107", "107", "107", "-")),
        Row(
            "ident", .received(ConnectionFixture.ident()), message("106", "109", "open 2 > opening", "109", "109", "109", "-", "-")),
        Row(
            "query", .received(ConnectionFixture.query(1)),
            message(
                "106", "109", "109", "-", "superseded 0, store begin 1, build 1 full schema", "store begin 1, build 1 > bootstrapping", "-",
                "-")),
        Row(
            "upload", .received(ConnectionFixture.upload([5], progress: 5)),
            message("106", "109", "109", "-", "integrate [5]", "integrate [5]", "-", "-")),
        Row(
            "mark", .received(.mark(session: 1, request: 1)), message("106", "109", "109", "-", "catch 1", "catch 1", "-", "-")),
        Row(
            "unbind", .received(.unbind(session: 1)),
            message(
                "106", "unbound, release nothing > unbound", "unbound, release nothing > unbound", "unbound, release nothing > unbound",
                "unbound, release > unbound", "unbound, release > unbound", "> unbound", "-")),
        Row(
            "ping", .received(.ping(timestamp: 1, roundTrip: 0)), "pong", "pong", "pong", "pong", "pong", "pong", "pong", "-"),
        Row(
            "report", .received(.report(RealmClientReport(session: 1, code: 212, message: "bad"))),
            message("106") + end("208 ClientReset", first: "report, ").dropFirst()),
        Row(
            "report of a schema", .received(.report(RealmClientReport(session: 1, code: 212, message: schemaReport))),
            message("106") + end("225 ApplicationBug", first: "report, ").dropFirst()),
        Row(
            "test command", .received(.testCommand(RealmTestCommand(session: 1, request: 1, body: "{}"))),
            message("106", "test", "test", "test", "test", "test", "-", "-")),
    ]

    private static let results: [Row] = [
        Row("allotted", .allotted(id, ConnectionFixture.file), only(.allotting, "ident 2 > bound")),
        Row(
            "opened", .opened(id, ConnectionFixture.fresh(), newest: 2),
            only(.opening, "store begin 0, build 0 full schema > bootstrapping")),
        Row("append", .append(id, [ConnectionFixture.entry(3)]), only(.steady, "download 3/0 ack 0 [3]")),
        Row("advanced", .advanced(id, 3), none),
        Row(
            "bootstrap", .bootstrap(id, ConnectionFixture.part(0, at: 2)),
            only(.bootstrapping, "store view 0 at 2, last 2/0 ack 0 [2] > steady", and: (.steady, "superseded 0"))),
        // The set of an IDENT is complete on the client, so it has no query error.
        Row(
            "query failed", .queryFailed(id, queryVersion: 0, "no"),
            only(.bootstrapping, "error 208 ClientReset, release > ended")),
        Row(
            "permissions changed", .permissionsChanged(id),
            only(
                .bootstrapping, "superseded 0, store begin 0, build 0 full schema", and: (.steady, "store begin 0, build 0 > bootstrapping")
            )),
        Row("integrated", .integrated(id, RealmIntegratedUpload(clientVersion: 5, serverVersion: 3)), none),
        Row("changeset integrated", .changesetIntegrated(id, RealmIntegratedUpload(clientVersion: 5, serverVersion: 3)), none),
        Row("caught up", .caughtUp(id, request: 1), none),
        Row("failed", .failed(id, SluiceError(.badClientFile, "no")), end("208 ClientReset")),
        Row("failed on the server", .failed(id, SluiceError(.postgresUnreachable, "no")), end("201 Transient")),
        Row("replaced", .replaced(id), end("201 Transient")),
        Row("an earlier session's answer", .failed(RealmSessionID(session: 1, generation: 0), SluiceError(.timeout, "late")), none),
    ]

    private static let events: [Row] = [
        Row("malformed", .malformed(SluiceError(.badSyntax, "no")), close(1011, "103")),
        Row("too large", .malformed(SluiceError(.limitsExceeded, "no")), close(1009)),
        Row("token expired", .tokenExpired, close(4001)),
        Row("user disabled", .userDisabled, close(4002)),
        Row("shut down", .shutDown, close(1011)),
        Row(
            "disconnected", .disconnected, "> closed", "release nothing > closed", "release nothing > closed", "release nothing > closed",
            "release > closed", "release > closed", "> closed", "-"),
    ]

    @Test func `starts from the situations of the table`() {
        for situation in Situation.allCases { #expect(situation.machine.situation == situation.rawValue) }
    }

    @Test func `does with each input in each situation what the table says`() {
        for row in Self.table {
            #expect(row.cells.count == Situation.allCases.count, "\(row.name)")
            for (situation, cell) in zip(Situation.allCases, row.cells) {
                var machine = situation.machine
                let actions = machine.handle(row.input, now: 0).map(\.text).joined(separator: ", ")
                let next = machine.situation == situation.rawValue ? "" : "> \(machine.situation)"
                let text = [actions, next].filter { !$0.isEmpty }.joined(separator: " ")
                #expect((text.isEmpty ? "-" : text) == cell, "\(row.name), \(situation)")
            }
        }
    }

    @Test(
        arguments: [
            (.received(.mark(session: 9, request: 1)), .protocolError),
            (.malformed(SluiceError(.badSyntax, "no")), .protocolError),
            (.malformed(SluiceError(.badCompression, "no")), .protocolError),
            (.malformed(SluiceError(.limitsExceeded, "no")), .tooLarge),
            (.malformed(SluiceError(.tooManyRequests, "no")), .overload),
            (.malformed(SluiceError(.internalError, "no")), .internalError), (.tokenExpired, .unauthorized),
            (.userDisabled, .forbidden), (.shutDown, .shutDown), (.disconnected, nil),
        ] as [(RealmConnectionInput, RealmCloseReason?)])
    func `closes for the reason that metrics count`(input: RealmConnectionInput, reason: RealmCloseReason?) {
        var machine = Situation.steady.machine
        let reasons = machine.handle(input, now: 0).compactMap { if case .close(let reason, _) = $0 { reason } else { nil } }
        #expect(reasons == (reason.map { [$0] } ?? []) && machine.isClosed)
    }

    @Test(arguments: [(RealmCloseReason.unauthorized, UInt16(4001)), (.forbidden, 4002), (.shutDown, 1011), (.tooLarge, 1009)])
    func `closes a client that knows no close codes with 1011`(reason: RealmCloseReason, code: UInt16) {
        for knowsCloseCodes in [true, false] {
            var settings = RealmConnectionSettings(version: 7, salt: 5)
            settings.knowsCloseCodes = knowsCloseCodes
            #expect(settings.code(of: reason).rawValue == (knowsCloseCodes || code < 4000 ? code : 1011))
        }
    }

    @Test func `has a row for each kind of message and input`() {
        let inputs = Self.table.map(\.input)
        let names = inputs.compactMap { if case .received(let message) = $0 { message.name } else { nil } }
        #expect(Set(names).count == 9)
        #expect(Set(inputs.map(Self.kind)) == Set(0..<18))
    }

    private static func kind(_ input: RealmConnectionInput) -> Int {
        switch input {
        case .received: 0
        case .malformed: 1
        case .allotted: 2
        case .opened: 3
        case .append: 4
        case .advanced: 5
        case .bootstrap: 6
        case .queryFailed: 7
        case .permissionsChanged: 8
        case .integrated: 9
        case .caughtUp: 10
        case .failed: 11
        case .replaced: 12
        case .tokenExpired: 13
        case .userDisabled: 14
        case .shutDown: 15
        case .disconnected: 16
        case .changesetIntegrated: 17
        }
    }
}
