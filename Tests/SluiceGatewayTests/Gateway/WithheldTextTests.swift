import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceNet
import SluicePipeline
import SluicePostgres
import SluiceValues
import SluiceWire
import SwiftProtobuf
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The words of the database and of the inside` {
    @Test(arguments: ErrorCode.allCases)
    func `are in no message to a client, whatever the code`(code: ErrorCode) throws {
        let inner = SluiceError(.badRequest, "ZQ message of a cause", fix: "ZQ fix", cause: .postgres(sqlState: "ZQ001", text: "ZQ"))
        var errors = [
            SluiceError(code, "Clean.", cause: .text("ZQ text")), SluiceError(code, "Clean.", value: "ZQ value"),
            SluiceError(code, "Clean.", cause: .error(inner)), SluiceError(code, "Clean.", cause: .kafka(code: 1, text: "ZQ")),
            SluiceError(code, "Clean.", cause: .system(errno: 2, text: "ZQ")), SluiceError(code, "Clean.", cause: .plugin("ZQ")),
            PostgresError(code, "ZQ of “SELECT 1”", fix: nil).asSluiceError,
            PostgresError(code, "ZQ of “SELECT 1”", cause: .postgres(sqlState: "ZQ001", text: "ZQ")).asSluiceError,
        ]
        if code.isInternal { errors.append(SluiceError(code, "ZQ message", fix: "ZQ fix")) }
        for error in errors {
            var messages = [try PBServerMessage(serializedBytes: SessionMessages.error(error)).textFormatString()]
            messages.append(PBQueryError(version: 1, error).textFormatString())
            let object = ObjectKey(type: "Item", key: .int(1))
            messages.append(PBRejectedWrite(RejectedWriteReport(changeset: 1, object: object, error: error)).textFormatString())
            messages.append(ErrorResponse(error).json.text)
            for message in messages { VaultApp.expectClean(message, "", code.name) }
            #expect(error.description.contains("ZQ"), "Operators read it.")
        }
    }

    /// Writes that the database refuses, and the name of the constraint that the client may read.
    private static let refused: [(kind: String, change: ObjectChange, constraint: String?)] = [
        ("CHECK", VaultApp.change("Item", "own", .set, ["size": .int(100)]), "item_size"),
        ("CHECK with a name of the table's", VaultApp.change("Item", "own", .set, ["size": .int(50)]), nil),
        ("UNIQUE", VaultApp.change("Item", "own", .set, ["code": .string("taken")]), "item_code"),
        ("FK", VaultApp.change("Item", "own", .set, ["parent": .string("nobody")]), "item_parent"),
        ("EXCLUDE", VaultApp.change("Item", "own", .set, ["slot": .int(7)]), "item_slot"),
        ("NOT NULL", VaultApp.change("Item", "own", .set, ["title": .string("null")]), nil),
        ("domain", VaultApp.change("Item", "own", .set, ["title": .string("domain")]), nil),
        ("value", VaultApp.change("Item", "own", .set, ["title": .string("divide")]), nil),
        ("trigger", VaultApp.change("Item", "own", .set, ["title": .string("raise P0001")]), nil),
        ("trigger with a code of its own", VaultApp.change("Item", "own", .set, ["title": .string("raise SEA01")]), nil),
        ("trigger that poses as a constraint", VaultApp.change("Item", "own", .set, ["title": .string("raise 23514")]), nil),
        ("deferred trigger", VaultApp.change("Item", "own", .set, ["title": .string("late")]), nil),
        ("partition", VaultApp.change("Part", "x", .create, ["title": .string("nowhere")]), nil),
        ("NUL", VaultApp.change("Item", "own", .set, ["code": .string("a\0b")]), nil),
    ]

    @Test func `of constraints of every kind stay with operators`() async throws {
        try await RunningGateway.deploy(VaultApp.tables) { deployment in
            try await deployment.run(VaultApp.files) { gateway in
                let session = try await gateway.openSession(["Item", "Part"])
                try await session.subscribe(1, [("Item", "TRUEPREDICATE"), ("Part", "TRUEPREDICATE")])
                for (number, write) in Self.refused.enumerated() {
                    try await session.upload(UInt64(number + 1), [write.change])
                    try await session.receive { $0.acknowledged == number + 1 }
                    try #require(session.compensations.count == number + 1, "\(write.kind) is refused")
                    let report = try #require(session.compensations.last)
                    VaultApp.expectClean(report.error.message, gateway.conninfo, write.kind)
                    VaultApp.expectClean("\(report.fields)", gateway.conninfo, write.kind)
                    #expect(report.cause == .database, "\(write.kind): \(report)")
                    let name = write.constraint.map { "(constraint \($0))" }
                    #expect(report.error.message.contains("constraint") == (name != nil), "\(write.kind): \(report)")
                    if let name { #expect(report.error.message.contains(name), "\(write.kind): \(report)") }
                }
                // Operators have all of it.
                let rules = try await gateway.texts("SELECT rule FROM sluice.rejected_write ORDER BY id")
                #expect(rules.count == Self.refused.count)
                for (rule, write) in zip(rules, Self.refused) { #expect(rule.contains("SQLSTATE"), "\(write.kind): \(rule)") }
                #expect(rules[0].contains("ZQ-SECRET"), "\(rules[0])")
                let reasons = try await gateway.texts("SELECT reason FROM sluice.rejected_write ORDER BY id")
                for reason in reasons { VaultApp.expectClean(reason, gateway.conninfo) }
                session.close()
            }
        }
    }

    @Test(arguments: ["dynamic", "raise 42501", "raise XX000", "raise 53100", "raise 40001", "raise 58030", "raise 55000", "raise 57P01"])
    func `of errors that end a session stay with operators`(title: String) async throws {
        try await RunningGateway.deploy(VaultApp.tables) { deployment in
            let lines = LinesOfLog()
            try await deployment.run(VaultApp.files, logger: .init(label: "test") { _ in lines }) { gateway in
                let session = try await gateway.openSession(["Item"])
                try await session.subscribe(1, [("Item", "TRUEPREDICATE")])
                try await session.upload(1, [VaultApp.change("Item", "own", .set, ["title": .string(title)])])
                try await session.receive { $0.error != nil }
                let error = try #require(session.error)
                VaultApp.expectClean(error.textFormatString(), gateway.conninfo, title)
                #expect(error.code == 600 || error.code == 601, "\(error)")
                await lines.wait(for: "A session ends with an error.", about: "zq_")
            }
        }
    }

    @Test func `are in no answer of ingest by HTTP`() async throws {
        try await RunningGateway.deploy(VaultApp.tables) { deployment in
            let lines = LinesOfLog()
            try await deployment.run(VaultApp.files, logger: .init(label: "test") { _ in lines }) { gateway in
                let token = try await gateway.anonymousToken()
                for accept in ["application/json", "application/x-ndjson"] {
                    for store in ["broken", "raised", "a\\u0000b"] {
                        let body = #"{"_id": "\#(store)", "store": "\#(store)", "value": 1}"#
                        let answer = try await gateway.ingest(Array(body.utf8), token: token, ["Accept": accept])
                        VaultApp.expectClean(answer.text, gateway.conninfo, store)
                        if store == "broken" { #expect(answer.text.contains("601"), "\(answer)") }
                    }
                }
                await lines.wait(for: "A body of objects was not stored", about: "zq_")
                // Refusals of single objects are for operators to read.
                let reasons = try await gateway.texts("SELECT reason FROM sluice.ingest_rejected WHERE object LIKE '%raised%'")
                #expect(!reasons.isEmpty && reasons.allSatisfy { $0.contains("zq_read refuses") }, "\(reasons)")
            }
        }
    }

    @Test func `are in no answer to who has not logged in`() async throws {
        try await RunningGateway.deploy(VaultApp.tables) { deployment in
            let lines = LinesOfLog()
            try await deployment.run(VaultApp.files, logger: .init(label: "test") { _ in lines }) { gateway in
                let token = try await gateway.anonymousToken()
                let base = "/api/client/v2.0/app/shop/auth/providers/local-userpass"
                let asked = [
                    ("\(base)/login", #"{"username":"a\u0000b@example.com","password":"password"}"#),
                    ("\(base)/register", #"{"email":"a\u0000b@example.com","password":"password"}"#),
                ]
                for (path, body) in asked {
                    let answer = try await gateway.request("POST", path, body)
                    #expect((400..<500).contains(answer.status), "\(answer)")
                    VaultApp.expectClean(answer.json.text, gateway.conninfo, path)
                }
                try await Self.lockOut(gateway.conninfo)
                for (path, body) in asked.map({ ($0.0, $0.1.replacing("\\u0000", with: "")) }) {
                    let answer = try await gateway.request("POST", path, body)
                    #expect(answer.status == 503 && answer.code == 600, "\(answer)")
                    VaultApp.expectClean(answer.json.text, gateway.conninfo, path)
                }
                VaultApp.expectClean(try await gateway.request("GET", "/ready").json.text, gateway.conninfo, "ready")
                let session = try await gateway.session(token: token)
                try await session.sendHello(["Item"])
                try await session.receive { $0.error != nil }
                VaultApp.expectClean(try #require(session.error).textFormatString(), gateway.conninfo, "hello")
                await lines.wait(for: "A request failed.", about: "postgres-unreachable")
                try await Self.letIn(gateway.conninfo)
            }
        }
    }

    /// Ends all connections to a database, and lets none in.
    ///
    /// One that is about to begin may have passed the check already, and is not in the list yet. PostgreSQL renames a database only when
    /// nobody is connected to it.
    private static func lockOut(_ conninfo: String) async throws {
        try await admin(conninfo, "ALTER DATABASE $1 ALLOW_CONNECTIONS false")
        for attempt in 1... {
            do {
                try await admin(
                    conninfo,
                    """
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '$1';
                    ALTER DATABASE $1 RENAME TO $1_; ALTER DATABASE $1_ RENAME TO $1
                    """)
                return
            } catch let error as PostgresError where error.sqlState == "55006" && attempt < 10 {}
        }
    }

    private static func letIn(_ conninfo: String) async throws { try await admin(conninfo, "ALTER DATABASE $1 ALLOW_CONNECTIONS true") }

    private static func admin(_ conninfo: String, _ sql: String) async throws {
        let name = try #require(conninfo.split(separator: " ").last { $0.hasPrefix("dbname=") }?.dropFirst("dbname=".count).description)
        let admin = try await PostgresConnection.connect(try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_POSTGRES"]))
        for statement in sql.split(separator: ";") { _ = try await admin.script(String(statement).replacing("$1", with: name)) }
        await admin.close()
    }
}
