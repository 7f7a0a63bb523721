import Dispatch
import SluiceCore
import SluicePorts
import SluiceWire
import Synchronization
import Testing

@testable import SluicePipeline

@Suite(.timeLimit(.minutes(1))) struct `A reader in the gateway's process` {
    private final class Reading: Sendable {
        let session = Mutex<Session?>(nil)
        let rows = Mutex<[ObjectKey: Row]?>(nil)
    }

    private static let order = ObjectKey(type: "Order", key: .string("a"))

    @Test func `sees the rows of a view whose end it has`() async throws {
        let reading = Reading()
        let channel = KeptMessages { message in
            guard case .bootstrapEnd? = message.kind, let session = reading.session.withLock(\.self) else { return }
            let isRead = DispatchSemaphore(value: 0)
            // Unstructured because: who sends the end is no task, and the session takes the view for live only once it is sent.
            Task {
                let rows = try? await session.visibleRows(of: [Self.order])
                reading.rows.withLock { $0 = rows }
                isRead.signal()
            }
            _ = isRead.wait(timeout: .now() + .seconds(20))
        }
        let table = OrderTable()
        table.insert("a", size: 3)
        let client = try await SessionClient(NoWrites(), snapshots: table, channel: channel)
        reading.session.withLock { $0 = client.session }
        try await client.subscribe(1)
        await client.until { $0.contains("end 1") }
        #expect(reading.rows.withLock(\.self) == [Self.order: Row([.string("a"), .int(3)])])
        await client.session.closed()
    }
}
