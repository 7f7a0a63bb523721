import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceReplica
import SluiceSDK
import SluiceSync
import SluiceWire
import Synchronization
import TestSupport
import Testing

/// What comes of a connection that ends, or of a token whose time is over, just then.
@Suite(.timeLimit(.minutes(5))) struct `A session that is interrupted` {
    private final class Count: Sendable {
        private let number = Mutex(0)
        var value: Int { number.withLock { $0 } }
        /// - Returns: whether it is the first.
        func next() -> Bool {
            number.withLock { number in
                number += 1
                return number == 1
            }
        }
    }

    private enum Lost: CaseIterable {
        case compensation, acknowledgement

        func isLost(_ message: PBServerMessage) -> Bool {
            switch message.kind {
            case .compensation?: self == .compensation
            case .uploadAck?: self == .acknowledgement
            default: false
            }
        }
    }

    private static func write(_ device: EngineDevice, _ key: String, store: String) throws {
        let transaction = try device.replica.beginWrite()
        try transaction.create(type: 0, key: .string(key), values: ["store": .string(store), "size": .int(3)])
        try transaction.commit()
    }

    private static func refusals(_ device: EngineDevice) -> [String] {
        device.reports.flatMap { report -> [String] in
            if case .refused(let writes) = report { writes.map { "\($0.object.key)" } } else { [] }
        }
    }

    /// An operator's restart is nothing that an app has to handle.
    @MainActor
    @Test func `that its gateway ends, and goes on with another, hears of no error`() async throws {
        try await RunningGateway.deploy { @MainActor deployment in
            let (phone, port) = try await deployment.run(ShopApp.files) { @MainActor gateway in
                (try await Phone.open(gateway, orders: ["store == 'north'"]), gateway.port)
            }
            try phone.add("written meanwhile")
            try await deployment.run(ShopApp.files, port: port) { @MainActor gateway in
                try await phone.session.wait(for: .upload)
                #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'written meanwhile'") == 1)
            }
            #expect(phone.said.all.isEmpty, "\(phone.said.all)")
            phone.session.suspend()
        }
    }

    @Test func `that its gateway ends is told so before the connection ends`() async throws {
        try await RunningGateway.deploy { deployment in
            let (begun, begin) = AsyncStream<RunningGateway>.makeStream()
            let (opened, open) = AsyncStream<Void>.makeStream()
            async let told = Self.lastWord(begun, open)
            try await deployment.run(ShopApp.files) { gateway in
                begin.yield(gateway)
                for await _ in opened { return }
            }
            let error = try await told
            #expect(
                error?.error.code == .shuttingDown && error?.sessionAction == .transient && error?.fatal == true,
                "\(String(describing: error))")
        }
    }

    /// What a session is told that is open when its gateway ends.
    /// - Parameter open: told when the session is open.
    private static func lastWord(
        _ begun: AsyncStream<RunningGateway>, _ open: AsyncStream<Void>.Continuation
    ) async throws -> PBSessionError? {
        defer { open.finish() }
        for await gateway in begun {
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            open.yield()
            _ = try await session.failure()
            return session.error
        }
        return nil
    }

    @Test func `Scenario 60: a device stays away for as long as the gateway says, and then comes back`() async throws {
        try await RunningGateway.with(plugins: ["FaultyC"]) { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
            let account = try await gateway.account(customData: #"{ "word": "do-crash" }"#)
            let (folder, transport) = (try Phone.Folder(), TimedTransport())
            let device = try EngineDevice(gateway, token: account.token, path: folder.replica, transport: transport)
            try device.subscribe()
            for await report in device.news where report.isInterruption { break }
            try await gateway.setCustomData("{}", of: account.id)
            try await device.engine.wait(for: .download, milliseconds: 180_000)
            #expect(try device.sizes() == ["n1": 1])
            // The device's own first pause is a second at most.
            let hellos = transport.hellos
            #expect(hellos.count >= 2 && hellos[1] - hellos[0] >= .seconds(2), "\(hellos)")
            await device.stop()
        }
    }

    /// The way to a gateway for a device, with the times at which it said hello.
    private final class TimedTransport: SyncTransport {
        private let transport = WebSocketTransport()
        private let times = Mutex<[ContinuousClock.Instant]>([])

        var hellos: [ContinuousClock.Instant] { times.withLock { $0 } }

        func connect(_ request: SyncRequest) async throws(SluiceError) -> any SyncConnection {
            Connection(connection: try await transport.connect(request), transport: self)
        }

        private struct Connection: SyncConnection {
            let connection: any SyncConnection
            let transport: TimedTransport

            func send(_ message: [UInt8]) async throws(SluiceError) {
                if case .hello? = try WireProtocol.decode(PBClientMessage.self, from: message).kind {
                    transport.times.withLock { $0.append(.now) }
                }
                try await connection.send(message)
            }

            func ping() { connection.ping() }
            func close() { connection.close() }
            func next() async throws(SluiceError) -> SyncInbound? { try await connection.next() }
        }
    }

    @Test(arguments: Lost.allCases)
    private func `Scenario 32: what was undone is told once, also when the connection ends between the commit and the message`(
        lost: Lost
    ) async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
            let (folder, times) = (try Phone.Folder(), Count())
            let path = folder.replica
            let token = try await gateway.anonymousToken()
            let device = try EngineDevice(
                gateway, token: token, path: path, transport: CutTransport { lost.isLost($0) ? times.next() : false })
            try device.subscribe()
            try await device.engine.wait(for: .download, milliseconds: 180_000)
            try Self.write(device, "bad", store: "south")
            for await report in device.news { if case .refused = report { break } }
            // The state is repaired when the app is told.
            #expect(try device.sizes() == ["n1": 1])
            // Told again neither to a new connection nor to the app's next start.
            device.engine.pause()
            device.engine.start()
            try Self.write(device, "good", store: "north")
            try await device.engine.wait(for: .upload, milliseconds: 180_000)
            try await device.engine.wait(for: .download, milliseconds: 180_000)
            #expect(Self.refusals(device) == ["\(Value.string("bad"))"])
            #expect(times.value >= 1, "nothing was lost")
            await device.stop()
            let again = try EngineDevice(gateway, token: token, path: path)
            try await again.engine.wait(for: .download, milliseconds: 180_000)
            #expect(try again.sizes() == ["n1": 1, "good": 3] && Self.refusals(again).isEmpty)
            await again.stop()
            #expect(try await gateway.count("SELECT count(*) FROM sluice.rejected_write") == 1)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.rejected_write WHERE NOT acknowledged") == 0)
        }
    }

    @Test func `Scenario 58: a token whose time is over in mid-session ends the session, which asks for another`() async throws {
        try await RunningGateway.with { gateway in
            let user = try await gateway.createUser("short@example.com")
            try await gateway.besideHealthySession {
                // A busy machine may need longer than a token lasts to say hello with it.
                for seconds: Int64 in [3, 10, 40] {
                    let session = try await gateway.session(token: try await gateway.token(of: user, lasting: seconds))
                    try await session.sendHello()
                    try await session.receive { $0.welcome != nil || $0.error != nil }
                    guard session.welcome != nil else { continue }
                    #expect(try await session.failure().code == .tokenExpired)
                    #expect(session.error?.sessionAction == .refreshUser)
                    return
                }
                Issue.record("no hello came in time")
            }
        }
    }

    @Test func `Scenario 58: a set whose bootstrap is under way when the token's time is over completes with another token`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 'n' || i, 'north', i FROM generate_series(1, 20000) AS i")
            let user = try await gateway.createUser("short@example.com")
            let (folder, pieces, tokens) = (try Phone.Folder(), Count(), Tokens(gateway, user))
            let device = try EngineDevice(
                gateway, path: folder.replica,
                transport: CutTransport { message in
                    if case .bootstrapRows? = message.kind, pieces.next() { await tokens.untilExpired() }
                    return false
                }, refresh: tokens.next)
            try device.subscribe()
            try await device.engine.wait(for: .download, milliseconds: 120_000)
            #expect(try device.sizes().count == 20_000 && device.replica.completeSubscriptionSet().version == 1)
            // Once more with nothing under way.
            try await tokens.untilAsked(2)
            await tokens.untilExpired()
            try await tokens.untilAsked(3)
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('late', 'north', 7)")
            try Self.write(device, "mine", store: "north")
            try await device.engine.wait(for: .upload, milliseconds: 180_000)
            try await device.engine.wait(for: .download, milliseconds: 180_000)
            #expect(try device.sizes()["late"] == 7 && device.sizes().count == 20_002)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine'") == 1)
            for report in device.reports {
                switch report {
                case .stopped, .loggedOut, .clientReset, .setRefused, .refused: Issue.record("the app was told of \(report)")
                default: #expect(!report.isReset)
                }
            }
            await device.stop()
        }
    }

    /// Access tokens of a user, of which the first two last for five seconds.
    private final class Tokens: Sendable {
        private let gateway: RunningGateway
        private let user: String
        private struct State: Sendable {
            var count = 0
            var expires = ContinuousClock.now
        }

        private let state = Watched(State())

        init(_ gateway: RunningGateway, _ user: String) { (self.gateway, self.user) = (gateway, user) }

        @Sendable func next() async throws(SluiceError) -> String {
            let isShort = state.change { state in
                state.count += 1
                if state.count <= 2 { state.expires = .now + .seconds(5) }
                return state.count <= 2
            }
            do {
                return try await gateway.token(of: user, lasting: isShort ? 5 : 1_800)
            } catch {
                throw SluiceError(.internalError, "\(error)")
            }
        }

        /// Waits until so many have been asked for.
        func untilAsked(_ count: Int) async throws {
            try #require(await state.until { $0.count >= count }, "fewer than \(count) tokens were asked for")
        }

        /// Until the last short one is good for nothing, even by the second in which it was made. Time is what ends it.
        func untilExpired() async {
            try? await Task.sleep(until: state.value.expires + .milliseconds(1_500), clock: .continuous)
        }
    }
}
