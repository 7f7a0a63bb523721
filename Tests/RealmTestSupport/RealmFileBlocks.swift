import SluiceCore

/// The arrays of containers in a client's file, which can end the client's process.
///
/// The objects of a class are in blocks of up to 256, in the order of their creation. Beside the values of a mixed property, a block has an
/// array with the keys of its lists and dictionaries. It begins with the first of them, and ends at the object with it. An object that is
/// created or erased behind that end damages memory, whether the app or an entry does it.
struct RealmFileBlocks: Sendable {
    private static let most = 256

    private struct Block {
        var objects: [ObjectKey] = []
        /// The lengths of the arrays by property.
        var lengths: [String: Int] = [:]
    }

    /// By class.
    private var blocks: [String: [Block]] = [:]

    mutating func create(_ object: ObjectKey) throws {
        var list = blocks[object.type] ?? [Block()]
        defer { blocks[object.type] = list }
        if list[list.count - 1].objects.count == Self.most { list.append(Block()) }
        let last = list.count - 1
        let index = list[last].objects.count
        list[last].objects.append(object)
        for (property, length) in list[last].lengths {
            guard index <= length else { throw Self.end("creates", object, property, length) }
            list[last].lengths[property] = length + 1
        }
    }

    mutating func erase(_ object: ObjectKey) throws {
        guard var list = blocks[object.type], let (number, index) = place(of: object) else { return }
        defer { blocks[object.type] = list }
        list[number].objects.remove(at: index)
        for (property, length) in list[number].lengths {
            guard index < length else { throw Self.end("erases", object, property, length) }
            list[number].lengths[property] = length - 1
        }
        // An empty block goes with its arrays, except the only one.
        if list[number].objects.isEmpty, list.count > 1 { list.remove(at: number) }
    }

    /// Puts a list or dictionary into a mixed property that had no value of its kind.
    mutating func putContainer(_ object: ObjectKey, _ property: String) {
        guard let (number, index) = place(of: object) else { return }
        let length = blocks[object.type]?[number].lengths[property] ?? 0
        blocks[object.type]?[number].lengths[property] = max(length, index + 1)
    }

    /// O(objects of the class).
    private func place(of object: ObjectKey) -> (block: Int, index: Int)? {
        for (number, block) in (blocks[object.type] ?? []).enumerated() {
            if let index = block.objects.firstIndex(of: object) { return (number, index) }
        }
        return nil
    }

    private static func end(_ verb: String, _ object: ObjectKey, _ property: String, _ length: Int) -> RealmModel.Fault {
        RealmModel.Fault("the process ends: it \(verb) \(object) behind \(length) keys of containers in '\(property)'")
    }
}
