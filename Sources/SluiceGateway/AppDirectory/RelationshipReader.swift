import SluiceCore

/// Reads `relationships.json`, which lists the properties that are links.
struct RelationshipReader {
    let targets: LinkTargets

    func read(_ node: ConfigNode, of title: String, into drafts: inout SchemaReader.Drafts) {
        for (path, relationship) in node.members {
            node.list.naming("\(title).\(path)") { read(relationship, at: path, of: title, into: &drafts) }
        }
    }

    private func read(_ relationship: ConfigNode, at path: String, of title: String, into drafts: inout SchemaReader.Drafts) {
        let members = relationship.members(allowing: ["ref", "foreign_key", "is_list", "source_key"])
        guard let target = target(members, relationship),
            let place = property(at: path, of: title, relationship, drafts),
            let property = drafts[place.type]?.properties[place.index]
        else { return }
        checkForeignKey(members["foreign_key"])
        let isList = members["is_list"]?.bool ?? false
        guard isList == (property.collection != .none) else {
            return relationship.problem(
                "'\(path)' is \(isList ? "a list here and no array" : "an array and no list here").",
                fix: "Correct 'is_list' or the schema.")
        }
        check(property, linksTo: target, path, relationship, drafts)
        drafts[place.type]?.properties[place.index].type = .link(to: target)
    }

    private func target(_ members: [String: ConfigNode], _ node: ConfigNode) -> String? {
        guard let ref = members.required("ref", of: node), let text = ref.string else { return nil }
        return targets.resolve(text, ref)
    }

    private func checkForeignKey(_ node: ConfigNode?) {
        guard let node, let key = node.string, key != "_id" else { return }
        node.problem("The foreign key '\(key)' cannot be synchronised.", fix: "Links go to '_id'.")
    }

    /// Resolves a path like `address.country` or `stops.[].station` to the property of its last part.
    private func property(
        at path: String, of title: String, _ node: ConfigNode, _ drafts: SchemaReader.Drafts
    ) -> (type: String, index: Int)? {
        let parts = path.split(separator: ".").map(String.init).filter { $0 != "[]" }
        var type = title
        for (depth, part) in parts.enumerated() {
            let name = part.hasSuffix("[]") ? String(part.dropLast(2)) : part
            let properties = drafts[type]?.properties ?? []
            guard let index = properties.firstIndex(where: { $0.name == name }) else {
                let near = Suggestion.nearest(to: name, in: properties.map(\.name))
                node.problem(
                    "\(type) has no property '\(name)'.", fix: near.map { "Did you mean '\($0)'?" } ?? "Correct the path '\(path)'.")
                return nil
            }
            if depth == parts.count - 1 { return (type, index) }
            guard case .embedded(let inner) = properties[index].type else {
                node.problem("'\(name)' in '\(path)' is not an embedded object.", fix: "Correct the path.")
                return nil
            }
            type = inner
        }
        return nil
    }

    private func check(
        _ property: Property, linksTo target: String, _ path: String, _ node: ConfigNode, _ drafts: SchemaReader.Drafts
    ) {
        if property.name == "_id" { node.problem("'\(path)' is a primary key and cannot be a link.", fix: "Use another property.") }
        if property.collection == .none, !property.isOptional {
            node.problem("The link '\(path)' is required.", fix: "Remove it from 'required': a link can always become nil.")
        }
        if drafts[target]?.kind == .asymmetric {
            node.problem(
                "'\(path)' links to the asymmetric class \(target), whose objects no device has.",
                fix: "Remove the relationship, or remove \(target) from 'asymmetric_tables'.")
        }
        let key = drafts[target]?.properties.first { $0.name == "_id" }?.type
        if let key, key != property.type, property.type != .link(to: target) {
            node.problem(
                "'\(path)' is of type \(property.type), but the '_id' of \(target) is of type \(key).", fix: "Make the types equal.")
        }
    }
}
