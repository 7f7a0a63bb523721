package import SluiceCore

extension Predicate {
    /// Compiles the condition for the hot path. A part without a flat form remains a tree in the program.
    package func compile() -> Program { Compiler.compile(bound, type) }
}

extension BoundPredicate {
    /// Compiles a condition on rows of a class.
    package func compile(for type: ObjectType) -> Program { Compiler.compile(self, type) }
}

/// Lays a condition out as leaves with two successors each, so that AND, OR and NOT cost nothing at run time.
///
/// It emits instructions from the last to the first, so that every successor is known, and reverses them at the end.
struct Compiler {
    private let type: ObjectType
    private var instructions: [Instruction] = []
    private var constants = RowBuffer()
    private var trees: [BoundPredicate] = []

    private init(type: ObjectType) { self.type = type }

    static func compile(_ predicate: BoundPredicate, _ type: ObjectType) -> Program {
        var compiler = Compiler(type: type)
        let entry: UInt16
        // Instruction numbers have 16 bits, and the highest are `accept` and `reject`.
        if predicate.leafCount <= Instruction.maximumCount {
            entry = compiler.emit(predicate, Instruction.accept, Instruction.reject)
        } else {
            entry = compiler.emitTree(predicate, Instruction.accept, Instruction.reject)
        }
        return compiler.finish(entry: entry)
    }

    /// Returns the entry of the emitted condition. Instruction numbers count from the end until `finish`.
    private mutating func emit(_ predicate: BoundPredicate, _ onTrue: UInt16, _ onFalse: UInt16) -> UInt16 {
        switch predicate {
        case .constant(let value): return value ? onTrue : onFalse
        case .not(let inner): return emit(inner, onFalse, onTrue)
        case .and(let parts):
            var next = onTrue
            for part in parts.reversed() { next = emit(part, next, onFalse) }
            return next
        case .or(let parts):
            var next = onFalse
            for part in parts.reversed() { next = emit(part, onTrue, next) }
            return next
        case .test(let subject, let test): return emit(subject, test, onTrue, onFalse)
        case .properties(let left, let comparison, let right, let foldsCase):
            // Folding and text search of a second cell, and containers, have no flat form.
            guard !foldsCase, !comparison.isText, isComparable(left), isComparable(right) else {
                return emitTree(predicate, onTrue, onFalse)
            }
            let pair = Instruction(.pair, Test(comparison, .null), isMixed: false, property: left, payload: UInt64(right))
            return append(pair, onTrue, onFalse)
        case .within(let property, let geometry):
            let first = UInt64(constants.cells.count)
            for number in geometry.numbers { constants.append(.double(number)) }
            let within = Instruction(.within, Test(.isIn, .null), isMixed: false, property: property, payload: first)
            return append(within, onTrue, onFalse)
        }
    }

    /// `true` if two cells of the property's type can be compared in place, because they cannot be containers.
    private func isComparable(_ property: Int) -> Bool {
        switch type.properties[property].type {
        case .mixed, .embedded: false
        default: true
        }
    }

    private mutating func append(_ instruction: Instruction, _ onTrue: UInt16, _ onFalse: UInt16) -> UInt16 {
        instructions.append(instruction.jumping(onTrue: onTrue, onFalse: onFalse))
        return UInt16(instructions.count - 1)
    }

    private mutating func emitTree(_ predicate: BoundPredicate, _ onTrue: UInt16, _ onFalse: UInt16) -> UInt16 {
        trees.append(predicate)
        let instruction = Instruction(word: UInt64(Opcode.tree.rawValue), payload: UInt64(trees.count - 1))
        return append(instruction, onTrue, onFalse)
    }

    private mutating func emit(_ subject: Subject, _ test: Test, _ onTrue: UInt16, _ onFalse: UInt16) -> UInt16 {
        let isMixed = type.properties[subject.property].type == .mixed
        let leaf = BoundPredicate.test(subject, test)
        let opcode: Opcode
        switch subject {
        case .property: opcode = .property
        case .elements(_, .any): opcode = .any
        case .elements(_, .all): opcode = .all
        case .elements(_, .none): opcode = .none
        case .count: opcode = .count
        }
        if isMixed, opcode != .property || Compiler.hasContainer(test.value) { return emitTree(leaf, onTrue, onFalse) }
        // An int fits into the payload, which saves a constant and a memory access.
        if case .int(let value) = test.value, opcode == .count || (opcode == .property && !isMixed) {
            let flat = Instruction(
                opcode == .count ? .count : .int, test, isMixed: false, property: subject.property, payload: UInt64(bitPattern: value))
            return append(flat, onTrue, onFalse)
        }
        if opcode == .count { return emitTree(leaf, onTrue, onFalse) }
        if test.value.isNull, opcode == .property {
            return append(Instruction(.null, test, isMixed: isMixed, property: subject.property, payload: 0), onTrue, onFalse)
        }
        let flat = Instruction(opcode, test, isMixed: isMixed, property: subject.property, payload: constants(test))
        return append(flat, onTrue, onFalse)
    }

    private static func hasContainer(_ value: Value) -> Bool {
        switch value {
        case .link, .dictionary: true
        case .list(let members):
            members.contains {
                switch $0 {
                case .link, .dictionary, .list: true
                default: false
                }
            }
        default: false
        }
    }

    /// Stores a test's constants in a row and returns the payload: the first index and, in the high half, the count.
    private mutating func constants(_ test: Test) -> UInt64 {
        let first = UInt64(constants.cells.count)
        if test.comparison == .isIn, case .list(let members) = test.value {
            for member in members { constants.append(member) }
            return first | UInt64(members.count) << 32
        }
        constants.append(test.value)
        return first | 1 << 32
    }

    private func finish(entry: UInt16) -> Program {
        let count = UInt16(instructions.count)
        // Reverses numbers, as instructions were emitted from the last to the first.
        func turned(_ target: UInt16) -> UInt16 { target >= Instruction.reject ? target : count - 1 - target }
        let entry = turned(entry)
        var words: [UInt64] = [UInt64(count) | UInt64(entry) << 16 | UInt64(constants.cells.count) << 32]
        words.reserveCapacity(1 + 2 * instructions.count + 2 * constants.cells.count + (constants.arena.count + 7) / 8)
        for instruction in instructions.reversed() {
            let flat = instruction.jumping(onTrue: turned(instruction.onTrue), onFalse: turned(instruction.onFalse))
            words.append(flat.word)
            words.append(flat.payload)
        }
        for cell in constants.cells {
            words.append(UInt64(cell.tag.rawValue) | UInt64(cell.length) << 32)
            words.append(cell.bits)
        }
        for start in stride(from: 0, to: constants.arena.count, by: 8) {
            var word: UInt64 = 0
            for (index, byte) in constants.arena[start...].prefix(8).enumerated() { word |= UInt64(byte) << UInt64(8 * index) }
            words.append(word)
        }
        return Program(words: words, trees: trees.map { Predicate(type: type, bound: $0) })
    }
}
