import SluiceCore
import SluiceMerge
import SluicePorts
import SluiceQuery
import SluiceWire
import Synchronization
import Testing

@testable import SluicePipeline

/// A schema with one class of orders.
struct OrderAuthority: SchemaAuthority {
    static let type = ObjectType(
        name: "Order", properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "size", type: .int)])

    /// All orders.
    static let view = View(version: 1, types: [TypeView(type: 0, predicate: .true(type), mask: nil)], partitions: [])

    /// What the log has of an order that was inserted, or had another size before.
    static func inserted(
        _ key: String, size: Int64 = 2, from before: Int64? = nil, at lsn: LSN, by origin: Origin? = nil, times: WriteTimes = WriteTimes()
    ) -> PendingRecord {
        var buffer = RowBuffer()
        func row(_ size: Int64) -> RowRef {
            buffer.beginRow()
            buffer.append(.string(key))
            buffer.append(Cell(tag: .int, bits: UInt64(bitPattern: size)))
            return buffer.endRow()
        }
        let old = before.map { row($0) }
        let position = Position(lsn: lsn, ordinal: 0)
        var change = CapturedChange(
            position: position, type: 0, operation: old == nil ? .insert : .update, before: old, after: row(size))
        if !times.isEmpty {
            let start = UInt32(buffer.arena.count)
            buffer.arena += times.encoded
            change.times = start..<UInt32(buffer.arena.count)
        }
        let transaction = CapturedTransaction(xid: 7, lsn: lsn, commitTime: 5_000_600, origin: origin, changes: 0..<1, end: nil)
        var writer = ByteWriter(capacity: 256)
        ChangeRecordCodec(Schema([type])).encode(change, of: transaction, rows: buffer, previous: nil, passage: .stay, into: &writer)
        return PendingRecord(position: position, xid: 7, bytes: Array(writer.bytes)[...])
    }

    func current() -> AppSchema { AppSchema(version: 1, schema: Schema([Self.type]), fields: QueryableFields(), isDevelopment: false) }
    func extend(by client: [ObjectType]) async throws -> AppSchema { current() }
    func makeQueryable(_ fields: [String: Set<String>]) async throws -> AppSchema { current() }
}

/// Frames that are the messages as they are.
struct PlainFrames: FrameMaker {
    fileprivate final class Storage: Sendable {
        let message: [UInt8]
        init(_ message: [UInt8]) { self.message = message }
    }

    func frame(_ message: [UInt8]) -> Frame { Frame(storage: Storage(message), byteCount: message.count) }
}

/// A client's end that keeps what it is sent in `PlainFrames`.
final class KeptMessages: SessionChannel {
    private let kept = Mutex<[PBServerMessage]>([])
    private let end = Mutex<SluiceError?>(nil)

    var messages: [PBServerMessage] { kept.withLock(\.self) }
    /// What it was closed with.
    var goodbye: SluiceError? { end.withLock(\.self) }
    /// Always so many wait.
    let bufferedBytes: Int
    var isClosed: Bool { goodbye != nil }

    private let sending: @Sendable (PBServerMessage) -> Void

    /// - Parameter sending: called with each message before it counts as sent, by whoever sends it, who waits.
    init(bufferedBytes: Int = 0, sending: @escaping @Sendable (PBServerMessage) -> Void = { _ in }) {
        self.bufferedBytes = bufferedBytes
        self.sending = sending
    }

    func send(_ frames: [Frame]) {
        for frame in frames {
            guard let storage = frame.storage as? PlainFrames.Storage,
                let message = try? WireProtocol.decode(PBServerMessage.self, from: storage.message)
            else {
                Issue.record("a frame that is no message of the server")
                continue
            }
            sending(message)
            kept.withLock { $0.append(message) }
        }
    }

    func drained(below bytes: Int) async {}
    func close(_ error: SluiceError?) { end.withLock { $0 = error } }
}
