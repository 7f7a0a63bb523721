import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceReplica
import SluiceSync
import SluiceWire
import Synchronization
import Testing

/// Two devices write one property, one of them while it is offline. When it comes back it shows the later write at once, and not only
/// when its own has been acknowledged.
@Suite(.timeLimit(.minutes(5))) struct `Two devices that write one property` {
    /// The file of a device, and what it shows of an order whenever the gateway acknowledges an upload, before the device knows.
    private final class Watch: Sendable {
        private struct State {
            var replica: Replica?
            var shown: [Int64?] = []
        }

        private let state = Mutex(State())

        var shown: [Int64?] { state.withLock(\.shown) }

        func look(at replica: Replica) { state.withLock { $0.replica = replica } }

        var transport: CutTransport {
            CutTransport { [self] message in
                guard case .uploadAck? = message.kind else { return false }
                while !Task.isCancelled {
                    if let replica = state.withLock(\.replica) {
                        note(replica)
                        break
                    }
                    await Task.yield()
                }
                return false
            }
        }

        private func note(_ replica: Replica) {
            do {
                let row = try replica.makeReader().store.row(type: 0, key: .string("k"))
                var size: Int64?
                if case .int(let number)?? = row.map({ $0[2] }) { size = number }
                state.withLock { $0.shown.append(size) }
            } catch {
                Issue.record(error)
            }
        }
    }

    private struct Field: Sendable {
        let mine: Phone.Folder
        let theirs: Phone.Folder
        let mineToken: String
        let theirToken: String

        init(_ gateway: RunningGateway) async throws {
            mine = try Phone.Folder()
            theirs = try Phone.Folder()
            mineToken = try await gateway.anonymousToken()
            theirToken = try await gateway.anonymousToken()
        }
    }

    private static func write(_ device: EngineDevice, size: Int64) throws {
        let transaction = try device.replica.beginWrite()
        try transaction.set(type: 0, key: .string("k"), property: 2, .int(size))
        try transaction.commit()
    }

    /// Returns in another millisecond.
    private static func tick() async {
        let begin = SystemEnvironment().wallMilliseconds()
        while SystemEnvironment().wallMilliseconds() == begin { await Task.yield() }
    }

    /// Both devices have an order that a device made; mine goes.
    private static func begin(_ gateway: RunningGateway, _ field: Field) async throws -> (mine: EngineDevice, theirs: EngineDevice) {
        let mine = try EngineDevice(gateway, token: field.mineToken, path: field.mine.replica)
        try mine.subscribe()
        try await mine.engine.wait(for: .download, milliseconds: 180_000)
        let transaction = try mine.replica.beginWrite()
        try transaction.create(type: 0, key: .string("k"), values: ["store": .string("north"), "size": .int(0)])
        try transaction.commit()
        try await mine.engine.wait(for: .upload, milliseconds: 180_000)
        try await mine.engine.wait(for: .download, milliseconds: 180_000)
        let theirs = try EngineDevice(gateway, token: field.theirToken, path: field.theirs.replica)
        try theirs.subscribe()
        try await theirs.engine.wait(for: .download, milliseconds: 180_000)
        #expect(try theirs.sizes() == ["k": 0])
        await mine.stop()
        return (mine, theirs)
    }

    private static func writeBoth(_ mine: EngineDevice, _ theirs: EngineDevice, mineIsLater: Bool) async throws {
        await tick()
        if !mineIsLater { try write(mine, size: 1) }
        await tick()
        try write(theirs, size: 2)
        try await theirs.engine.wait(for: .upload, milliseconds: 180_000)
        await tick()
        if mineIsLater { try write(mine, size: 1) }
    }

    private static func comeBack(_ gateway: RunningGateway, _ field: Field, latest: Int64) async throws {
        let watch = Watch()
        let device = try EngineDevice(gateway, token: field.mineToken, path: field.mine.replica, transport: watch.transport)
        watch.look(at: device.replica)
        try await device.engine.wait(for: .upload, milliseconds: 180_000)
        try await device.engine.wait(for: .download, milliseconds: 180_000)
        #expect(watch.shown.first == latest, "it shows \(watch.shown)")
        #expect(try device.sizes() == ["k": latest])
        #expect(try await gateway.count("SELECT size FROM orders WHERE _id = 'k'") == latest)
        await device.stop()
    }

    @Test(arguments: [false, true]) func `and one comes back, told from the log`(mineIsLater: Bool) async throws {
        try await RunningGateway.with { gateway in
            let field = try await Field(gateway)
            let (mine, theirs) = try await Self.begin(gateway, field)
            try await Self.writeBoth(mine, theirs, mineIsLater: mineIsLater)
            try await Self.comeBack(gateway, field, latest: mineIsLater ? 1 : 2)
            await theirs.stop()
        }
    }

    @Test(arguments: [false, true]) func `and one comes back, told from the tables`(mineIsLater: Bool) async throws {
        try await RunningGateway.deploy { deployment in
            let field = try await deployment.run(ShopApp.files) { gateway in
                let field = try await Field(gateway)
                let (mine, theirs) = try await Self.begin(gateway, field)
                try await Self.writeBoth(mine, theirs, mineIsLater: mineIsLater)
                await theirs.stop()
                return field
            }
            // Another gateway has none of what the first one's log had.
            try await deployment.run(ShopApp.files) { gateway in
                try await Self.comeBack(gateway, field, latest: mineIsLater ? 1 : 2)
            }
        }
    }

    @Test func `and SQL writes it, too`() async throws {
        try await RunningGateway.with { gateway in
            let field = try await Field(gateway)
            let (mine, theirs) = try await Self.begin(gateway, field)
            await Self.tick()
            try Self.write(mine, size: 1)
            await Self.tick()
            try await gateway.sql("UPDATE orders SET size = 3 WHERE _id = 'k'")
            try await theirs.engine.wait(for: .download, milliseconds: 180_000)
            try await Self.comeBack(gateway, field, latest: 3)
            await theirs.stop()
        }
    }

    @Test(arguments: [false, true]) func `while both are there, and one's upload is under way for long`(mineIsLater: Bool) async throws {
        try await RunningGateway.with { gateway in
            let field = try await Field(gateway)
            let (gone, theirs) = try await Self.begin(gateway, field)
            #expect(try gone.sizes() == ["k": 0])
            let mine = try EngineDevice(gateway, token: field.mineToken, path: field.mine.replica, transport: LostUploads())
            try await mine.engine.wait(for: .download, milliseconds: 180_000)
            if mineIsLater {
                // Its clock is behind what it sees later on; what counts is when it writes.
                try await Self.writeBoth(mine, theirs, mineIsLater: false)
                try await mine.engine.wait(for: .download, milliseconds: 180_000)
                #expect(try mine.sizes() == ["k": 2])
                try Self.write(mine, size: 4)
            } else {
                try await Self.writeBoth(mine, theirs, mineIsLater: false)
            }
            try await mine.engine.wait(for: .download, milliseconds: 180_000)
            #expect(try mine.sizes() == ["k": mineIsLater ? 4 : 2])
            await mine.stop()
            try await Self.comeBack(gateway, field, latest: mineIsLater ? 4 : 2)
            await theirs.stop()
        }
    }
}

/// A way to a gateway on which uploads are lost, and nothing else.
private struct LostUploads: SyncTransport {
    private struct Connection: SyncConnection {
        let connection: any SyncConnection

        func send(_ message: [UInt8]) async throws(SluiceError) {
            let sent = try WireProtocol.decode(PBClientMessage.self, from: message)
            if case .upload(let upload)? = sent.kind, !upload.changesets.isEmpty { return }
            try await connection.send(message)
        }

        func ping() { connection.ping() }
        func close() { connection.close() }
        func next() async throws(SluiceError) -> SyncInbound? { try await connection.next() }
    }

    func connect(_ request: SyncRequest) async throws(SluiceError) -> any SyncConnection {
        Connection(connection: try await WebSocketTransport().connect(request))
    }
}
