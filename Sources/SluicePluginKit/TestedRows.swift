package import CSluicePlugin
import SluiceValues

/// The writes of a test in the form in which a gateway passes them.
///
/// A value has the type that its extended JSON denotes. A class has the columns of the app's schema and any others of its objects.
package struct TestedRows {
    private struct TypeEntry {
        var name: String
        var columns: [String]
        var primaryKey: UInt32
    }

    private var arena: [UInt8] = []
    private var types: [TypeEntry] = []
    private var records: [(type: Int, operation: sluice_operation, before: Int?, after: Int?)] = []

    /// - Parameter type: A class to include even without objects.
    package init(_ writes: [PluginWrite], of type: String? = nil, schema: [String: PluginObjectType]) {
        for name in (type.map { [$0] } ?? []) + writes.map(\.type) where !types.contains(where: { $0.name == name }) {
            let objects = writes.filter { $0.type == name }.flatMap { [$0.before, $0.after] }.compactMap { $0?.value.members }
            let known = schema[name]?.properties.keys.map { $0 } ?? []
            let columns = Set(known + objects.flatMap { $0.map(\.key) }).sorted()
            let key = columns.firstIndex(of: schema[name]?.primaryKey ?? "_id")
            types.append(TypeEntry(name: name, columns: columns, primaryKey: key.map { UInt32($0) } ?? SLUICE_NO_COLUMN))
        }
        for write in writes {
            guard let type = types.firstIndex(where: { $0.name == write.type }) else { continue }
            let operation = write.operation == "insert" ? SLUICE_INSERT : write.operation == "delete" ? SLUICE_DELETE : SLUICE_UPDATE
            records.append((type, operation, append(write.before, type), append(write.after, type)))
        }
    }

    private mutating func append(_ row: PluginRow?, _ type: Int) -> Int? {
        guard let object = row?.value else { return nil }
        let columns = types[type].columns
        let start = room(columns.count)
        for (index, name) in columns.enumerated() { if let value = object[name] { put(value, at: start + 16 * index) } }
        return start
    }

    // MARK: Cells

    private mutating func room(_ cells: Int) -> Int {
        let start = (arena.count + 15) & ~15
        arena.append(contentsOf: repeatElement(0, count: start - arena.count + 16 * cells))
        return start
    }

    private mutating func put(_ value: PluginValue, at place: Int) {
        switch value {
        case .null: cell(SLUICE_TAG_NULL, at: place)
        case .bool(let v): cell(SLUICE_TAG_BOOL, bits: v ? 1 : 0, at: place)
        case .int(let v): cell(SLUICE_TAG_INT, bits: UInt64(bitPattern: v), at: place)
        case .double(let v): cell(SLUICE_TAG_DOUBLE, bits: v.bitPattern, at: place)
        case .string(let v): cell(SLUICE_TAG_STRING, content: v.utf8, at: place)
        case .array(let elements): cells(SLUICE_TAG_LIST, elements, at: place)
        case .object(let members):
            if let form = ExtendedForm(value) { return put(form, at: place) }
            let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            cells(SLUICE_TAG_DICTIONARY, sorted.flatMap { [.string($0.key), $0.value] }, at: place)
        }
    }

    private mutating func put(_ form: ExtendedForm, at place: Int) {
        switch form {
        case .int(let v): put(PluginValue.int(v), at: place)
        case .double(let v): put(PluginValue.double(v), at: place)
        case .decimal(let v): cell(SLUICE_TAG_DECIMAL, content: v.description.utf8, at: place)
        case .binary(let v): cell(SLUICE_TAG_BINARY, content: v, at: place)
        case .timestamp(let v):
            cell(SLUICE_TAG_DATE, length: UInt32(bitPattern: v.nanoseconds), bits: UInt64(bitPattern: v.seconds), at: place)
        case .objectId(let v): cell(SLUICE_TAG_OBJECT_ID, length: v.low, bits: v.high, at: place)
        case .uuid(let v): cell(SLUICE_TAG_UUID, content: v.bytes, at: place)
        case .link(let type, let key): cells(SLUICE_TAG_LINK, [.string(type), key], at: place)
        }
    }

    private mutating func cells(_ tag: sluice_tag, _ values: [PluginValue], at place: Int) {
        let start = room(values.count)
        cell(tag, length: UInt32(values.count), bits: UInt64(start), at: place)
        for (index, value) in values.enumerated() { put(value, at: start + 16 * index) }
    }

    private mutating func cell(_ tag: sluice_tag, content: some Collection<UInt8>, at place: Int) {
        cell(tag, length: UInt32(content.count), bits: UInt64(arena.count), at: place)
        arena.append(contentsOf: content)
    }

    private mutating func cell(_ tag: sluice_tag, length: UInt32 = 0, bits: UInt64 = 0, at place: Int) {
        unsafe arena.withUnsafeMutableBytes {
            unsafe $0.storeBytes(
                of: sluice_cell(tag: UInt8(tag.rawValue), reserved: (0, 0, 0), length: length, bits: bits), toByteOffset: place,
                as: sluice_cell.self)
        }
    }

    // MARK: Lending

    /// Lends the writes to `body`, as a host does. The memory is invalid afterwards.
    /// - Parameter user: Nil if the hook receives no user.
    package func lend<R>(_ user: PluginUser?, _ body: (UnsafePointer<sluice_writes>) -> R) -> R {
        let loan = Loan()
        let base = unsafe loan.copy(arena)
        let entries = unsafe loan.array(
            types.map { type in
                let columns = unsafe loan.array(type.columns.map { unsafe loan.text($0) })
                return unsafe sluice_type(
                    name: loan.text(type.name), columns: columns, column_count: UInt32(type.columns.count), primary_key: type.primaryKey)
            })
        func row(_ start: Int?, _ type: Int) -> sluice_row {
            let cells = unsafe start.map { unsafe UnsafeRawPointer(base + $0).assumingMemoryBound(to: sluice_cell.self) }
            return unsafe sluice_row(cells: cells, arena: base, count: start == nil ? 0 : UInt32(types[type].columns.count), reserved: 0)
        }
        let writes = unsafe loan.array(
            records.map { record in
                unsafe sluice_write(
                    type: entries + record.type, operation: record.operation.rawValue, reserved: 0, before: row(record.before, record.type),
                    after: row(record.after, record.type))
            })
        var batch = unsafe sluice_writes(
            size: UInt32(MemoryLayout<sluice_writes>.size), write_size: UInt32(MemoryLayout<sluice_write>.stride),
            type_size: UInt32(MemoryLayout<sluice_type>.stride), write_count: UInt32(records.count), type_count: UInt32(types.count),
            reserved: 0, user_id: loan.text(user?.id ?? ""), user_type: loan.text(user?.type ?? ""),
            user: loan.text(user?.value.json ?? ""),
            types: entries, writes: writes, arena: base, arena_length: arena.count)
        return withExtendedLifetime(loan) { unsafe withUnsafePointer(to: &batch) { unsafe body($0) } }
    }
}

/// Memory that is freed with its owner.
@safe
private final class Loan {
    private var blocks: [UnsafeMutableRawPointer] = unsafe []

    func copy(_ bytes: [UInt8]) -> UnsafePointer<UInt8> { unsafe array(bytes) }

    func text(_ text: String) -> sluice_text {
        unsafe sluice_text(data: array(text.utf8.map { CChar(bitPattern: $0) }), length: text.utf8.count)
    }

    func array<T>(_ elements: [T]) -> UnsafePointer<T> {
        let block = UnsafeMutableRawPointer.allocate(byteCount: max(elements.count * MemoryLayout<T>.stride, 1), alignment: 16)
        unsafe blocks.append(block)
        let array = unsafe block.bindMemory(to: T.self, capacity: elements.count)
        unsafe array.initialize(from: elements, count: elements.count)
        return unsafe UnsafePointer(array)
    }

    deinit { unsafe blocks.forEach { unsafe $0.deallocate() } }
}
