import SluiceCore
import SluiceValues

/// Compares a cell of a row, or of a list in it, with constants in place.
struct CellComparison {
    private let comparison: UInt8
    private let foldsCase: Bool
    private let nan: NaNRule
    private let cell: Cell
    private let arena: UnsafePointer<UInt8>

    init(_ instruction: Instruction, _ cell: Cell, _ arena: UnsafePointer<UInt8>) {
        comparison = instruction.comparison
        foldsCase = instruction.foldsCase
        nan = instruction.isMixed ? .lowest : .unordered
        self.cell = cell
        self.arena = arena
    }

    var isNull: Bool { cell.tag == .null || cell.tag == .absent }

    func holds(_ constant: Cell, _ bytes: UnsafePointer<UInt8>) -> Bool {
        switch comparison {
        case TestOperator.equal.rawValue: isEqual(constant, bytes)
        case TestOperator.notEqual.rawValue: !isEqual(constant, bytes)
        case TestOperator.less.rawValue: orderIfBoth(constant, bytes) == .less
        case TestOperator.greater.rawValue: orderIfBoth(constant, bytes) == .greater
        case TestOperator.lessOrEqual.rawValue: isAtMost(constant, bytes, .less)
        case TestOperator.greaterOrEqual.rawValue: isAtMost(constant, bytes, .greater)
        default: matchesText(constant, bytes)
        }
    }

    func isEqual(_ constant: Cell, _ bytes: UnsafePointer<UInt8>) -> Bool {
        if isNull || constant.tag == .null { return isNull && constant.tag == .null }
        return order(constant, bytes) == .equal
    }

    private func orderIfBoth(_ constant: Cell, _ bytes: UnsafePointer<UInt8>) -> Order? {
        isNull || constant.tag == .null ? nil : order(constant, bytes)
    }

    private func isAtMost(_ constant: Cell, _ bytes: UnsafePointer<UInt8>, _ side: Order) -> Bool {
        if isNull || constant.tag == .null { return isNull && constant.tag == .null }
        let order = order(constant, bytes)
        return order == side || order == .equal
    }

    private func text(_ cell: Cell, _ base: UnsafePointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: base + Int(cell.bits), count: Int(cell.length))
    }

    private func matchesText(_ constant: Cell, _ bytes: UnsafePointer<UInt8>) -> Bool {
        guard cell.tag == constant.tag, cell.tag == .string || cell.tag == .binary else { return false }
        let haystack = Haystack(bytes: text(cell, arena), folds: foldsCase)
        let pattern = text(constant, bytes)
        return switch comparison {
        case TestOperator.beginsWith.rawValue: haystack.matches(pattern, at: 0)
        case TestOperator.endsWith.rawValue: haystack.matches(pattern, at: haystack.count - pattern.count)
        case TestOperator.contains.rawValue: haystack.contains(pattern)
        default: haystack.isLike(pattern)
        }
    }

    /// Returns the order of two values that are not null, or nil if they have none.
    func order(_ constant: Cell, _ bytes: UnsafePointer<UInt8>) -> Order? {
        if cell.tag == constant.tag {
            switch cell.tag {
            case .bool: return .of(cell.bits, constant.bits)
            case .int: return .of(Int64(bitPattern: cell.bits), Int64(bitPattern: constant.bits))
            case .string, .binary: return textOrder(text(constant, bytes))
            case .timestamp, .objectId: return wordOrder(constant)
            case .uuid: return .compare(text(cell, arena), text(constant, bytes))
            default: break
            }
        }
        guard let l = CellComparison.number(cell, arena), let r = CellComparison.number(constant, bytes) else { return nil }
        return Number.compare(l, r, nan: nan)
    }

    private func wordOrder(_ constant: Cell) -> Order {
        if cell.tag == .objectId {
            return cell.bits == constant.bits ? .of(cell.length, constant.length) : .of(cell.bits, constant.bits)
        }
        if cell.bits == constant.bits { return .of(Int32(bitPattern: cell.length), Int32(bitPattern: constant.length)) }
        return .of(Int64(bitPattern: cell.bits), Int64(bitPattern: constant.bits))
    }

    private func textOrder(_ constant: UnsafeBufferPointer<UInt8>) -> Order {
        let own = text(cell, arena)
        guard foldsCase else { return .compare(own, constant) }
        let haystack = Haystack(bytes: own, folds: true)
        for index in 0..<min(own.count, constant.count) where haystack.byte(index) != constant[index] {
            return haystack.byte(index) < constant[index] ? .less : .greater
        }
        return .of(own.count, constant.count)
    }

    private static func number(_ cell: Cell, _ base: UnsafePointer<UInt8>) -> Number? {
        switch cell.tag {
        case .int: .int(Int64(bitPattern: cell.bits))
        case .float: .double(Double(Float(bitPattern: UInt32(truncatingIfNeeded: cell.bits))))
        case .double: .double(Double(bitPattern: cell.bits))
        case .decimal: .decimal(decimal(base + Int(cell.bits)))
        default: nil
        }
    }

    private static func decimal(_ bytes: UnsafePointer<UInt8>) -> Decimal128 {
        let raw = UnsafeRawPointer(bytes)
        return Decimal128(
            high: UInt64(bigEndian: raw.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
}

extension Order {
    /// Compares byte by byte, eight at a time while they are equal.
    static func compare(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Order {
        let shared = min(left.count, right.count)
        var index = 0
        if let l = UnsafeRawPointer(left.baseAddress), let r = UnsafeRawPointer(right.baseAddress) {
            while index + 8 <= shared {
                let a = l.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                let b = r.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                if a != b { return .of(a.bigEndian, b.bigEndian) }
                index += 8
            }
        }
        while index < shared {
            if left[index] != right[index] { return left[index] < right[index] ? .less : .greater }
            index += 1
        }
        return .of(left.count, right.count)
    }
}

/// Reads the elements of a list of scalars in place, as cells with offsets into the row's arena.
///
/// A list of scalars has no nested containers. If one occurs, or the bytes are malformed, the list ends before it.
struct ElementReader {
    private let arena: UnsafePointer<UInt8>
    private var position: Int
    private let end: Int
    private var remaining: Int

    /// The number of elements in the list's header, or 0 for null and other values.
    let count: Int

    init(_ cell: Cell, _ arena: UnsafePointer<UInt8>) {
        self.arena = arena
        position = Int(cell.bits) + 4
        end = Int(cell.bits) + Int(cell.length)
        if cell.tag == .list, cell.length >= 4 {
            count = Int(UInt32(littleEndian: UnsafeRawPointer(arena + Int(cell.bits)).loadUnaligned(as: UInt32.self)))
        } else {
            count = 0
        }
        remaining = count
    }

    private func load<T: FixedWidthInteger>(_: T.Type, at offset: Int = 0) -> T {
        T(littleEndian: UnsafeRawPointer(arena + position + offset).loadUnaligned(as: T.self))
    }

    mutating func next() -> Cell? {
        guard remaining > 0, position < end, let tag = CellTag(rawValue: arena[position]) else { return nil }
        remaining -= 1
        position += 1
        guard let size = size(of: tag), position + size <= end else {
            remaining = 0
            return nil
        }
        defer { position += size }
        switch tag {
        case .bool: return Cell(tag: .bool, bits: UInt64(arena[position]))
        case .int, .double: return Cell(tag: tag, bits: load(UInt64.self))
        case .float: return Cell(tag: .float, bits: UInt64(load(UInt32.self)))
        case .timestamp: return Cell(tag: .timestamp, length: load(UInt32.self, at: 8), bits: load(UInt64.self))
        case .objectId:
            return Cell(tag: .objectId, length: load(UInt32.self, at: 8).byteSwapped, bits: load(UInt64.self).byteSwapped)
        case .string, .binary: return Cell(tag: tag, length: UInt32(size - 4), bits: UInt64(position + 4))
        case .decimal, .uuid: return Cell(tag: tag, length: 16, bits: UInt64(position))
        case .null, .absent, .list, .dictionary, .link: return .null
        }
    }

    /// Returns the bytes of an element's content, or nil for a type that is not in a list of scalars.
    private func size(of tag: CellTag) -> Int? {
        switch tag {
        case .null: 0
        case .bool: 1
        case .float: 4
        case .int, .double: 8
        case .timestamp, .objectId: 12
        case .decimal, .uuid: 16
        case .string, .binary: position + 4 <= end ? 4 + Int(load(UInt32.self)) : nil
        case .absent, .list, .dictionary, .link: nil
        }
    }
}
