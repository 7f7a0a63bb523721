import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceWire

/// The predicate of a view of one class and the requested predicate, sealed for the client's next session.
///
/// The seal binds them to a user and a point. A client that could forge a predicate, or move it to a later point, would receive keys of
/// objects that it never had.
struct SealedCondition {
    let sealer: any Sealer
    let user: String
    let point: SnapshotPoint

    /// The maximum size of both texts together, in bytes. For longer ones the client keeps only the hash.
    static let maximumBytes = 8 << 10

    func seal(_ predicate: Predicate, asked: Predicate) -> [UInt8] {
        let (condition, asked) = (Array(predicate.canonicalText.utf8), Array(asked.canonicalText.utf8))
        guard condition.count + asked.count <= Self.maximumBytes else { return [] }
        let length = UInt32(condition.count).littleEndian
        return sealer.seal(withUnsafeBytes(of: length, Array.init) + condition + asked, context: context(predicate.type.name))
    }

    /// Returns the two predicates; nil if the seal is invalid or they no longer fit the class.
    func open(_ sealed: [UInt8], of type: ObjectType, in schema: Schema) -> (predicate: Predicate, asked: Predicate)? {
        guard !sealed.isEmpty, let content = sealer.open(sealed, context: context(type.name)), content.count >= 4 else { return nil }
        let length = content.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        let texts = content.dropFirst(4)
        guard length <= texts.count, let condition = String(validating: texts.prefix(length), as: UTF8.self),
            let asked = String(validating: texts.dropFirst(length), as: UTF8.self)
        else { return nil }
        guard let predicate = try? Query.parse(condition).predicate(on: type, in: schema),
            let wanted = try? Query.parse(asked).predicate(on: type, in: schema)
        else { return nil }
        return (predicate, wanted)
    }

    /// The authenticated context. NUL terminators keep adjacent texts apart.
    private func context(_ type: String) -> [UInt8] {
        var context: [UInt8] = []
        for text in [user, point.cluster, String(point.transaction), type] { context += Array(text.utf8) + [0] }
        return context
    }
}
