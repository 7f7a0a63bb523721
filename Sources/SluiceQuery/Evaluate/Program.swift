package import SluiceCore

/// A compiled condition: one flat array of words, read in place without reference counting or allocation.
///
/// The words are the header (instruction count, entry, constant count), the instructions (two words each), the constants (cells of two
/// words) and their bytes. Equal words are equal conditions, so an index may share and compare them. They exist in memory only and change
/// between releases. A comparison takes about 16 bytes, and a constant other than an int 16 and its text.
package struct Program: Hashable, Sendable {
    package let words: [UInt64]
    /// Leaves without a flat form, such as comparisons of containers or of two mixed properties. They are evaluated as trees, which
    /// allocates.
    let trees: [Predicate]

    /// `true` if `words` is the whole program, so that `Program.run` accepts a copy of them.
    package var isFlat: Bool { trees.isEmpty }

    /// `true` if the condition holds for a row. An absent property counts as null.
    package func matches(_ row: RowView) -> Bool {
        words.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return false }
            return Machine(base).run(row, trees)
        }
    }

    /// Runs a flat program at another address.
    /// - Precondition: The words are a copy of the `words` of a program that `isFlat`.
    package static func run(_ words: UnsafePointer<UInt64>, _ row: RowView) -> Bool { Machine(words).run(row, []) }
}

/// The interpreter, with a pointer to each part of the words.
struct Machine {
    private let header: UInt64
    private let instructions: UnsafePointer<UInt64>
    private let constants: UnsafeRawPointer
    private let bytes: UnsafePointer<UInt8>

    @inline(__always)
    init(_ words: UnsafePointer<UInt64>) {
        header = words[0]
        instructions = words + 1
        let instructionCount = Int(UInt16(truncatingIfNeeded: header))
        let constantCount = Int(header >> 32)
        constants = UnsafeRawPointer(words + 1 + 2 * instructionCount)
        bytes = UnsafeRawPointer(words + 1 + 2 * (instructionCount + constantCount)).assumingMemoryBound(to: UInt8.self)
    }

    func run(_ row: RowView, _ trees: [Predicate]) -> Bool {
        var next = UInt16(truncatingIfNeeded: header >> 16)
        while next < Instruction.reject {
            let instruction = Instruction(word: instructions[2 * Int(next)], payload: instructions[2 * Int(next) + 1])
            next = holds(instruction, row, trees) ? instruction.onTrue : instruction.onFalse
        }
        return next == Instruction.accept
    }

    @inline(__always)
    private func holds(_ instruction: Instruction, _ row: RowView, _ trees: [Predicate]) -> Bool {
        let cell = row[instruction.property]
        switch instruction.opcode {
        case Opcode.int.rawValue:
            // The fast path: both are ints, and the constant is in the payload.
            guard cell.tag == .int else { return holds(instruction, cell, row.arena, against: instruction.payload) }
            return Machine.compare(Int64(bitPattern: cell.bits), instruction)
        case Opcode.property.rawValue: return holds(instruction, cell, row.arena)
        case Opcode.null.rawValue:
            return (cell.tag == .null || cell.tag == .absent) == (instruction.comparison == TestOperator.equal.rawValue)
        case Opcode.count.rawValue: return Machine.compare(Int64(ElementReader(cell, row.arena).count), instruction)
        case Opcode.pair.rawValue: return holds(instruction, cell, row[Int(instruction.payload)], row.arena)
        case Opcode.within.rawValue: return lies(cell, row.arena, instruction)
        case Opcode.tree.rawValue: return trees[Int(instruction.payload)].matches(row)
        default: return elements(instruction, cell, row.arena)
        }
    }

    @inline(__always)
    private static func compare(_ value: Int64, _ instruction: Instruction) -> Bool {
        let constant = Int64(bitPattern: instruction.payload)
        return switch instruction.comparison {
        case TestOperator.equal.rawValue: value == constant
        case TestOperator.notEqual.rawValue: value != constant
        case TestOperator.less.rawValue: value < constant
        case TestOperator.lessOrEqual.rawValue: value <= constant
        case TestOperator.greater.rawValue: value > constant
        default: value >= constant
        }
    }

    @inline(never)
    private func lies(_ cell: Cell, _ arena: UnsafePointer<UInt8>, _ instruction: Instruction) -> Bool {
        guard let place = Geometry.Place(cell, arena) else { return false }
        return FlatShape(constants + 16 * instruction.firstConstant).contains(place)
    }

    private func elements(_ instruction: Instruction, _ cell: Cell, _ arena: UnsafePointer<UInt8>) -> Bool {
        var reader = ElementReader(cell, arena)
        let isAll = instruction.opcode == Opcode.all.rawValue
        while let element = reader.next() {
            // One element decides: the first that holds for ANY and NONE, the first that does not for ALL.
            if holds(instruction, element, arena) != isAll { return instruction.opcode == Opcode.any.rawValue }
        }
        return instruction.opcode != Opcode.any.rawValue
    }

    // MARK: One value

    private func constant(_ index: Int) -> Cell { constants.load(fromByteOffset: 16 * index, as: Cell.self) }

    /// Compares two cells of one row.
    @inline(never)
    private func holds(_ instruction: Instruction, _ cell: Cell, _ other: Cell, _ arena: UnsafePointer<UInt8>) -> Bool {
        CellComparison(instruction, cell, arena).holds(other.tag == .absent ? .null : other, arena)
    }

    /// Compares a cell that is not an int with an int constant.
    @inline(never)
    private func holds(_ instruction: Instruction, _ cell: Cell, _ arena: UnsafePointer<UInt8>, against payload: UInt64) -> Bool {
        let constant = Cell(tag: .int, bits: payload)
        return CellComparison(instruction, cell, arena).holds(constant, arena)
    }

    private func holds(_ instruction: Instruction, _ cell: Cell, _ arena: UnsafePointer<UInt8>) -> Bool {
        let comparison = CellComparison(instruction, cell, arena)
        guard instruction.comparison == TestOperator.isIn.rawValue else {
            return comparison.holds(constant(instruction.firstConstant), bytes)
        }
        return isMember(comparison, instruction)
    }

    /// `true` if the value is one of the constants. Those of a typed property are sorted with null first. Those of a mixed one are
    /// unsorted.
    private func isMember(_ comparison: CellComparison, _ instruction: Instruction) -> Bool {
        var low = instruction.firstConstant
        var high = low + instruction.constantCount
        if instruction.isMixed {
            while low < high {
                if comparison.isEqual(constant(low), bytes) { return true }
                low += 1
            }
            return false
        }
        // Null has no order, so it is excluded from the binary search.
        if comparison.isNull { return constant(low).tag == .null }
        if constant(low).tag == .null { low += 1 }
        while low < high {
            let middle = (low + high) / 2
            switch comparison.order(constant(middle), bytes) {
            case .equal: return true
            case .less: high = middle
            case .greater: low = middle + 1
            // NaN, or a value of another type: it equals no constant.
            case nil: return false
            }
        }
        return false
    }
}
