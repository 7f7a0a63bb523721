import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct `What a device is told that comes back` {
    /// What a device says when it comes, and what it is told: `nil` goes on. What a reset needs is the only thing that makes one.
    @Test(arguments: [false, true])
    func `Scenario 47: each cause of a reset is told with what to do about it, and nothing else is one`(
        isRecoveryDisabled: Bool
    ) async throws {
        let sync = try #require(ShopApp.files["sync/config.json"])
        let files = [
            "sync/config.json": sync.replacing(
                #""type": "flexible","#, with: #""type": "flexible", "is_recovery_mode_disabled": \#(isRecoveryDisabled),"#)
        ]
        try await RunningGateway.with(files: files) { gateway in
            let reset: SessionAction = isRecoveryDisabled ? .clientResetNoRecovery : .clientReset
            let causes: [Cause] = [
                Cause("nothing", nil),
                Cause("the file was forgotten: termination, an operator's order, a bundled file of before", (.badClientFile, reset)) {
                    file, gateway in
                    try await gateway.sql("DELETE FROM sluice.client WHERE id = \(file.client)")
                },
                Cause("the database is older than the file: a backup was restored", (.badClientFile, reset)) { file, _ in
                    file.applied = LSN(rawValue: 1 << 60)
                },
                Cause("the database was restored, and has grown since", (.badClientFile, reset)) { file, _ in
                    file.held?.witness = .init(HistoryAnchor(transaction: 1_000_000_000, commitTime: 1).bytes)
                },
                Cause("the file's changesets have a gap: a backup of between", (.badClientFile, reset)) { file, _ in file.changeset = 7 },
                Cause("the file's secret is another", (.badClientFile, reset)) { file, _ in file.secret = [1, 2, 3] },
                Cause("the file is somebody else's", (.userMismatch, .clientResetNoRecovery)) { file, gateway in
                    file.token = try await gateway.anonymousToken()
                },
                Cause("it was away for longer than anything is remembered", nil) { file, gateway in
                    try await gateway.sql("UPDATE sluice.client SET seen_at = now() - interval '1 year' WHERE id = \(file.client)")
                },
                Cause("its user's rules are others", nil) { file, gateway in
                    try await gateway.setCustomData(#"{ "store": "south" }"#, of: file.user)
                },
                Cause("its app has what the server has not", (.unknownType, .applicationBug)) { file, _ in
                    file.types.append("Nonsense")
                },
            ]
            for cause in causes {
                let error = try await Self.tell(cause, gateway)
                #expect(
                    error?.error.code == cause.outcome?.code && error?.sessionAction == cause.outcome?.action,
                    "\(cause.name): \(String(describing: error))")
            }
        }
    }

    /// What a device has when it comes back.
    private struct File {
        var token: String
        var user: String
        var client: UInt64
        var secret: [UInt8]
        var applied: LSN
        var held: PBHeld?
        /// The number of what it uploads first.
        var changeset: UInt64 = 2
        var types = ["Order", "Tag"]
    }

    private struct Cause {
        var name: String
        var outcome: (code: ErrorCode, action: SessionAction)?
        var happen: (inout File, RunningGateway) async throws -> Void

        init(
            _ name: String, _ outcome: (ErrorCode, SessionAction)?,
            happen: @escaping (inout File, RunningGateway) async throws -> Void = { _, _ in }
        ) {
            self.name = name
            self.outcome = outcome
            self.happen = happen
        }
    }

    /// A device that has uploaded once, something that happens, and its return.
    /// - Returns: the error that ends its session; nil when it can upload.
    private static func tell(_ cause: Cause, _ gateway: RunningGateway) async throws -> PBSessionError? {
        let user = try await gateway.account()
        let first = try await gateway.session(token: user.token)
        try await first.hello()
        let welcome = try #require(first.welcome)
        try await first.subscribe(1, [("Order", "store == 'north'")])
        try await first.upload(1, [TestSession.order("one \(cause.name)", ["store": .string("north"), "size": .int(1)])])
        try await first.receive { $0.acknowledged == 1 }
        var file = File(
            token: user.token, user: user.id, client: welcome.client, secret: Array(welcome.secret), applied: first.applied,
            held: first.held)
        first.close()
        try await cause.happen(&file, gateway)
        let again = try await gateway.session(token: file.token)
        again.goOn(from: TestSession.File(rows: first.rows, held: file.held, applied: file.applied))
        try await again.sendHello(file.types, client: file.client, secret: file.secret)
        try await again.receive { $0.welcome != nil || $0.error != nil }
        if again.error != nil { return again.error }
        try await again.upload(file.changeset, [TestSession.order("two \(cause.name)", ["store": .string("north"), "size": .int(1)])])
        try await again.receive { $0.acknowledged == file.changeset || $0.error != nil }
        again.close()
        return again.error
    }
}
