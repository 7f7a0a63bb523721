import SluiceCore
package import SluiceValues

/// The projection of a database trigger: the members of an event that its function receives.
package struct ChangeProjection: Hashable, Sendable {
    /// The paths of a projection as a tree.
    private indirect enum Tree: Hashable, Sendable {
        case leaf
        case branch([String: Tree])

        /// Adds a path.
        ///
        /// - Returns: `false` if another path contains it, or is contained in it.
        mutating func add(_ path: ArraySlice<Substring>) -> Bool {
            guard case .branch(var children) = self, let step = path.first.map(String.init) else { return false }
            if path.count == 1 {
                guard children[step] == nil else { return false }
                children[step] = .leaf
            } else {
                var child = children[step] ?? .branch([:])
                guard child.add(path.dropFirst()) else { return false }
                children[step] = child
            }
            self = .branch(children)
            return true
        }

        func apply(_ json: JSON, keeps: Bool) -> JSON? {
            guard case .branch(let children) = self else { return keeps ? json : nil }
            switch json {
            case .array(let elements): return .array(elements.compactMap { apply($0, keeps: keeps) })
            case .object(let members) where ExtendedForm(json) == nil:
                return .object(
                    members.compactMap { member in
                        guard let child = children[member.key] else { return keeps ? nil : member }
                        return child.apply(member.value, keeps: keeps).map { JSON.Member(member.key, $0) }
                    })
            default: return keeps ? nil : json
            }
        }
    }

    private var tree = Tree.branch([:])
    /// `true` if the paths name the members that remain; `false` if they name those that are left out.
    private var keeps = false

    /// Reads a projection of MongoDB: paths with 1 or `true` to keep them, or with 0 or `false` to leave them out. `_id` is kept unless
    /// it is left out.
    ///
    /// - Throws: `Condition.Unsupported` with the part that is neither, or that differs from the others.
    package init(_ json: JSON) throws(Condition.Unsupported) {
        guard json.members != nil else { throw Condition.unsupported(json.text) }
        var flags: [(path: [Substring], isKept: Bool)] = []
        try Self.read(json, [], &flags)
        let others = flags.filter { $0.path != ["_id"] }
        keeps = others.first?.isKept ?? flags.first?.isKept ?? false
        if let odd = others.first(where: { $0.isKept != keeps }) { throw Condition.unsupported(odd.path.joined(separator: ".")) }
        for (path, isKept) in flags where isKept == keeps {
            guard tree.add(path[...]) else { throw Condition.unsupported(path.joined(separator: ".")) }
        }
        // An inclusion keeps `_id` unless it says otherwise.
        if keeps, !flags.contains(where: { $0.path.first == "_id" }) { _ = tree.add(["_id"]) }
    }

    private static func read(
        _ json: JSON, _ path: [Substring], _ flags: inout [(path: [Substring], isKept: Bool)]
    ) throws(Condition.Unsupported) {
        for member in json.members ?? [] {
            let path = path + member.key.split(separator: ".", omittingEmptySubsequences: false)
            guard !path.contains(where: { $0.isEmpty || $0.hasPrefix("$") }) else { throw Condition.unsupported(member.key) }
            switch member.value.plain {
            case .bool(let flag): flags.append((path, flag))
            case .int(let number): flags.append((path, number != 0))
            case .double(let number): flags.append((path, number != 0))
            case .object(let inner) where !inner.isEmpty && ExtendedForm(member.value) == nil: try read(member.value, path, &flags)
            default: throw Condition.unsupported(path.joined(separator: "."))
            }
        }
    }

    /// Returns the members of an event that remain.
    package func apply(_ event: JSON) -> JSON { tree.apply(event, keeps: keeps) ?? event }
}
