import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues
import SluiceWire
import TestSupport
import Testing

/// FaultyC behind a gateway: what it does in one hook is the named error of the one who caused it, and a session beside goes on.
@Suite(.timeLimit(.minutes(5))) struct `A gateway with a hostile plugin` {
    private struct Deed {
        var word: String
        var code: ErrorCode
        var text: String
        /// It takes processor time to do, or a look at what it does: on a busy machine the clock may end it before.
        var takesTime = false

        init(_ word: String, _ code: ErrorCode, _ text: String, takesTime: Bool = false) {
            (self.word, self.code, self.text, self.takesTime) = (word, code, text, takesTime)
        }

        var codes: [ErrorCode] { takesTime ? [code, .pluginTimeout] : [code] }
        var texts: [String] { takesTime ? [text, "did not answer"] : [text] }

        /// A client gets the code. The plugin's and the host's words are for operators.
        func isNamed(by error: SluiceError) -> Bool { codes.contains(error.code) && !error.message.contains(text) }

        /// How many rows of a table for operators name it so, in columns of code and text, of what it was done to.
        func kept(in table: String, code: String, text: String, object: String) -> String {
            """
            SELECT count(*) FROM \(table) WHERE \(code) ~ '\(codes.map { "\($0.rawValue)" }.joined(separator: "|"))'
            AND \(text) ~ '\(texts.joined(separator: "|"))' AND \(object) LIKE '%\(word)%'
            """
        }
    }

    private static let deeds = [
        Deed("do-crash", .pluginCrashed, "signal 11"), Deed("do-exit", .pluginCrashed, "exit status 3"),
        Deed("do-loop", .pluginTimeout, "processor time", takesTime: true), Deed("do-leak", .pluginCrashed, "signal 6", takesTime: true),
        Deed("do-garbage", .pluginBadAnswer, "not JSON"), Deed("do-overflow", .pluginBadAnswer, "with more than"),
        Deed("do-odd-status", .pluginFailed, "FaultyC failed in"), Deed("do-write-to-socket", .pluginBadAnswer, "sent a message with"),
    ]
    // A host with a sanitizer has no limit of memory.
    .filter { $0.word != "do-leak" || Built.hosted == nil }
    private static let hang = Deed("do-hang", .pluginTimeout, "slept for more than", takesTime: true)

    @Test func `names what it does when a session opens`() async throws {
        try await Self.run { gateway, beside in
            for deed in Self.deeds + [Self.hang] {
                let token = try await gateway.account(customData: Self.data(deed.word)).token
                try await Self.inTime { () -> Bool in
                    let session = try await gateway.session(token: token)
                    try await session.sendHello(["Store"])
                    let error = try await session.failure()
                    if error.code == .pluginUnavailable { return false }
                    #expect(deed.isNamed(by: error), "\(deed.word): \(error)")
                    await beside.log.wait(for: "A session ends with an error.", aboutAny: deed.texts)
                    #expect(session.error?.action == .transient && session.error?.backoffMilliseconds == 2_000, "\(deed.word)")
                    return true
                }
                try await beside.goesOn(after: deed.word)
            }
            // It reaches nothing, and calling the host's functions wrongly does no harm: both are answers.
            for word in ["do-break-out", "do-ask", "do-babble"] {
                let session = try await gateway.session(token: try await gateway.account(customData: Self.data(word)).token)
                try await session.hello(["Store"])
                session.close()
                try await beside.goesOn(after: word)
            }
            #expect(!FileManager.default.fileExists(atPath: "/tmp/faulty-was-here"))
        }
    }

    @Test func `names what it does when somebody subscribes`() async throws {
        try await Self.run { gateway, beside in
            // Each is tried again for a while, and one that ends the host is refused the third time. Few enough do that at a time that
            // others are not refused over it.
            let groups = [
                ["do-crash", "do-loop", "do-garbage", "do-overflow", "do-odd-status"], ["do-exit", "do-leak"],
                ["do-write-to-socket", "do-hang"],
            ]
            let deeds = Self.deeds + [Self.hang]
            #expect(Set(groups.joined()).isSuperset(of: deeds.map(\.word)))
            for words in groups {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for deed in deeds where words.contains(deed.word) { group.addTask { try await Self.subscribe(gateway, deed) } }
                    try await group.waitForAll()
                }
            }
            try await beside.goesOn(after: "subscriptions")
        }
    }

    @Test func `names what it does when somebody writes`() async throws {
        try await Self.run { gateway, beside in
            let session = try await gateway.openSession(["Store"])
            try await session.subscribe(1, [("Store", "TRUEPREDICATE")])
            for (number, deed) in (Self.deeds + [Self.hang]).enumerated() {
                let key = ObjectKey(type: "Store", key: .string(deed.word))
                let values: [String: Value] = ["name": .string(deed.word), "size": .int(5)]
                try await session.upload(UInt64(number + 1), [ObjectChange(object: key, kind: .create, values: values)])
                try await session.receive { $0.compensations.count > number || $0.hasEnded }
                let told = session.compensations.last?.error
                #expect(told?.code == .compensatingWrite && told?.message.contains("FaultyC") == false, "\(deed.word)")
                // What went wrong is for operators.
                let kept = deed.kept(in: "sluice.rejected_write", code: "rule", text: "rule", object: "key")
                #expect(try await gateway.count(kept) == 1, "\(deed.word)")
                try await beside.goesOn(after: deed.word)
            }
            #expect(try await gateway.count("SELECT count(*) FROM stores WHERE name LIKE 'do-%'") == 0)
            #expect(session.error == nil)
        }
    }

    @Test func `names what it does with objects that are only sent`() async throws {
        try await Self.run { gateway, beside in
            let token = try await gateway.anonymousToken()
            for deed in Self.deeds + [Self.hang] {
                let reply = try await gateway.ingest(Array(#"{"_id":"\#(deed.word)","store":"north","value":1}"#.utf8), token: token)
                if deed.code == .pluginFailed {
                    // It says that it cannot decide, and there is nothing that it does decide about.
                    #expect(reply.status >= 500 && reply.json["code"]?.int == Int64(deed.code.rawValue), "\(deed.word): \(reply)")
                } else {
                    #expect(reply.status == 200, "\(deed.word): \(reply)")
                    let kept = deed.kept(in: "sluice.ingest_rejected", code: "code::text", text: "reason", object: "object")
                    #expect(try await gateway.count(kept) == 1, "\(deed.word)")
                }
                try await beside.goesOn(after: deed.word)
            }
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 0)
        }
    }

    @Test func `keeps the session whose user's data it fails over`() async throws {
        try await Self.run { gateway, beside in
            let account = try await gateway.account()
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Store"])
            try await session.subscribe(1, [("Store", "TRUEPREDICATE")])
            for (number, word) in ((Self.deeds + [Self.hang]).map(\.word) + ["do-fail"]).enumerated() {
                try await gateway.setCustomData(Self.data(word), of: account.id)
                try await beside.goesOn(after: word)
                try await gateway.setCustomData("{}", of: account.id)
                try await session.sendMark(UInt64(number + 1))
                try await session.receive { $0.mark == UInt64(number + 1) || $0.hasEnded }
                #expect(session.keys("Store") == beside.keys && session.error == nil, "\(word)")
            }
        }
    }

    @Test func `opens the session of somebody else while its hosts end one after another`() async throws {
        try await Self.run { gateway, beside in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<6 {
                    let account = try await gateway.account(customData: Self.data("do-crash \(number)"))
                    group.addTask {
                        let session = try await gateway.session(token: account.token)
                        try await session.sendHello(["Store"])
                        let error = try await session.failure()
                        #expect([.pluginCrashed, .pluginUnavailable].contains(error.code), "\(error)")
                    }
                }
                for _ in 0..<3 {
                    group.addTask {
                        let session = try await Self.openInTime(gateway)
                        try await session.subscribe(1, [("Store", "TRUEPREDICATE")])
                        session.close()
                    }
                }
                try await group.waitForAll()
            }
            try await beside.goesOn(after: "crashes")
        }
    }

    private static func subscribe(_ gateway: RunningGateway, _ deed: Deed) async throws {
        // What has ended the host twice is refused for that.
        let endsHost = !["do-garbage", "do-overflow", "do-odd-status"].contains(deed.word)
        let codes = endsHost ? deed.codes + [.pluginCrashed] : deed.codes
        try await inTime {
            let session = try await openInTime(gateway)
            try await session.sendSubscribe(1, [("Store", "_id != '\(deed.word)'")])
            try await session.receive { !$0.queryErrors.isEmpty || $0.hasEnded }
            let error = session.queryErrors.first?.error
            if error?.code == .pluginUnavailable { return false }
            #expect(error.map { codes.contains($0.code) } == true, "\(deed.word): \(error?.description ?? "none")")
            // The session stands, and its next subscriptions are taken.
            try await session.subscribe(2, [("Store", "TRUEPREDICATE")])
            session.close()
            return true
        }
    }

    /// As a device does it: who is told that there is no plugin to ask just now comes back.
    private static func inTime(_ body: () async throws -> Bool) async throws {
        try #require(try await eventually(body), "The plugin does not come back.")
    }

    private static func openInTime(_ gateway: RunningGateway) async throws -> TestSession {
        var opened: TestSession?
        try await inTime {
            let session = try await gateway.session(token: try await gateway.anonymousToken())
            try await session.sendHello(["Store"])
            try await session.receive { $0.welcome != nil || $0.hasEnded }
            if session.welcome != nil { opened = session }
            #expect(opened != nil || session.error?.error.code == .pluginUnavailable && session.error?.action == .transient)
            return opened != nil
        }
        return try #require(opened)
    }

    private static func data(_ word: String) -> String { #"{ "word": "\#(word)" }"# }

    /// A gateway with the plugin, which has 128 MB, and half a second of processor time for each call.
    private static func run(_ body: @escaping @Sendable (RunningGateway, Beside) async throws -> Void) async throws {
        let plugin = Built.plugin("FaultyC")
        let list = """
            { "plugins": [{ "file": "\(plugin)", "sha256": "\(try PluginList.sha256(of: plugin))", "deadline_ms": 500, "memory_mb": 128 }] }
            """
        let log = LinesOfLog()
        let files = FaultyApp.files.merging(["plugins.json": list]) { $1 }
        try await RunningGateway.with(files: files, logger: Logger(label: "test") { _ in log }) { gateway in
            let session = try await gateway.openSession(["Store"])
            try await session.subscribe(1, [("Store", "TRUEPREDICATE")])
            try await body(gateway, Beside(gateway: gateway, session: session, log: log))
            #expect(session.error == nil && !session.hasEnded)
        }
    }

    /// The session of somebody who has nothing to do with it.
    private final class Beside {
        private let gateway: RunningGateway
        private let session: TestSession
        /// The gateway's.
        let log: LinesOfLog
        private(set) var keys: Set<String> = []

        init(gateway: RunningGateway, session: TestSession, log: LinesOfLog) {
            (self.gateway, self.session, self.log) = (gateway, session, log)
        }

        /// Commits something that the session must get.
        func goesOn(after word: String) async throws {
            let key = "after \(keys.count) \(word)"
            keys.insert(key)
            try await gateway.sql("INSERT INTO stores (_id, name, size) VALUES ('\(key)', 'Beside', 2)")
            try await session.receive { $0.keys("Store").contains(key) || $0.hasEnded }
            #expect(session.keys("Store") == keys, "after \(word)")
        }
    }
}
