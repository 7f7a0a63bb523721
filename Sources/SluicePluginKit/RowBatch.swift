import CSluicePlugin
import Synchronization

/// The memory of one call's rows: the gateway's while the hook runs, and a copy if a plugin keeps rows beyond it.
@safe
final class RowBatch: Sendable {
    private struct Memory: Sendable {
        var address: UInt
        var isOwn: Bool

        var base: UnsafeRawPointer { unsafe UnsafeRawPointer(bitPattern: address)! }
    }

    private let memory: Mutex<Memory>
    private let count: Int

    /// Borrows the bytes until `keep` is called.
    init(lending bytes: UnsafeRawBufferPointer) {
        // An empty batch has no address, but `Memory` needs one. It is never read.
        memory = Mutex(Memory(address: max(UInt(bitPattern: bytes.baseAddress), 16), isOwn: false))
        count = bytes.count
    }

    /// Copies the borrowed bytes before they become invalid.
    func keep() {
        memory.withLock { memory in
            guard !memory.isOwn else { return }
            let copy = UnsafeMutableRawPointer.allocate(byteCount: max(count, 1), alignment: 16)
            unsafe copy.copyMemory(from: memory.base, byteCount: count)
            memory = Memory(address: UInt(bitPattern: copy), isOwn: true)
        }
    }

    deinit {
        memory.withLock { if $0.isOwn { unsafe $0.base.deallocate() } }
    }

    /// Reads cells in `body` under a lock, so that `keep` cannot replace the memory meanwhile.
    func read<R: Sendable>(_ body: (CellReader) -> R) -> R { memory.withLock { unsafe body(CellReader(arena: $0.base)) } }
}

/// The names of a class's columns.
final class ColumnTable: Sendable {
    let type: String
    let names: [String]
    let index: [String: Int]
    /// The columns in the order of their names, which is the order of members in JSON.
    let sorted: [Int]

    init(type: String, names: [String]) {
        self.type = type
        self.names = names
        index = Dictionary(names.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        sorted = names.indices.sorted { names[$0].utf8.lexicographicallyPrecedes(names[$1].utf8) }
    }

    /// Returns the index of the column with exactly the bytes of this name, or nil.
    func column(_ name: String) -> Int? {
        guard let column = index[name], ByteText(names[column]) == ByteText(name) else { return nil }
        return column
    }
}

/// The column tables of recent classes. Names become strings when the schema changes, not for each batch.
struct ColumnTables {
    private static let most = 1_000
    private var tables: [ColumnTable] = []

    mutating func table(of type: sluice_type) -> ColumnTable {
        if let known = tables.first(where: { unsafe Self.isSame($0, type) }) { return known }
        let columns = unsafe UnsafeBufferPointer(start: type.columns, count: Int(type.column_count))
        let table = ColumnTable(type: unsafe Self.string(type.name), names: unsafe columns.map { unsafe Self.string($0) })
        if tables.count >= Self.most { tables.removeAll() }
        tables.append(table)
        return table
    }

    private static func isSame(_ table: ColumnTable, _ type: sluice_type) -> Bool {
        guard unsafe table.names.count == Int(type.column_count), unsafe isSame(table.type, type.name) else { return false }
        let columns = unsafe UnsafeBufferPointer(start: type.columns, count: table.names.count)
        return table.names.indices.allSatisfy { unsafe isSame(table.names[$0], columns[$0]) }
    }

    private static func isSame(_ name: String, _ text: sluice_text) -> Bool {
        let utf8 = unsafe UnsafeRawBufferPointer(start: text.data, count: text.length)
        return unsafe name.utf8.count == utf8.count && name.utf8.elementsEqual(utf8)
    }

    private static func string(_ text: sluice_text) -> String {
        unsafe String(decoding: UnsafeRawBufferPointer(start: text.data, count: text.length), as: UTF8.self)
    }
}
