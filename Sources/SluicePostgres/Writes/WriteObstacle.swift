import SluiceCore
import SluicePorts

extension TableShape {
    /// Returns the reason why the table cannot take a write of a client; nil if it may.
    func obstacle(_ write: StoredWrite, key: Value) -> SluiceError? {
        let needed: TablePrivilege? =
            switch write {
            case .insert: .insert
            case .update: .update
            case .delete: .delete
            case .nothing: nil
            }
        guard let needed else { return nil }
        let name = "\(type.name) \(StoreText.key(key))"
        guard mapping.isWritable, mapping.privileges.contains(needed) else {
            let lack = mapping.isWritable ? needed : .update
            return SluiceError(
                .writeNotAllowed, "\(name): the database does not let the gateway write the class.",
                cause: .error(SluiceError(.grantMissing, "The role of the gateway lacks \(lack.rawValue) on \(mapping.displayName).")))
        }
        if forms[self.key].stored(key) != key {
            return SluiceError(
                .writeNotAllowed,
                "\(name): the table does not keep this value of \(type.name).\(type.properties[self.key].name), for example its trailing blanks.",
                fix: "Give the object a key that the table keeps.")
        }
        if case .update(let values) = write, let index = values.keys.sorted().first(where: { forms[$0].isGenerated }) {
            return SluiceError(
                .writeNotAllowed, "\(name): \(type.name).\(type.properties[index].name) is computed by the database and cannot be written.")
        }
        return malformed(write, name)
    }

    /// Returns the reason for the rejection of a text that is no time or duration; nil without one.
    private func malformed(_ write: StoredWrite, _ name: String) -> SluiceError? {
        for (index, value) in values(write) {
            guard let kind = forms[index].element.textsOfValues,
                let text = Self.texts(value).first(where: { forms[index].normal($0) == nil })
            else { continue }
            return SluiceError(
                .writeNotAllowed,
                "\(name): \(type.name).\(type.properties[index].name) cannot be \"\(text.prefix(100))\". Its values are each \(kind).")
        }
        return nil
    }

    /// Returns the written values with the indices of their properties.
    private func values(_ write: StoredWrite) -> [(Int, Value)] {
        switch write {
        case .insert(let row): forms.indices.compactMap { index in row[index].map { (index, $0) } }
        case .update(let values): values.map { ($0.key, $0.value) }
        case .delete, .nothing: []
        }
    }

    /// Returns the reason for the rejection of a value that an enum did not have when the table was read; nil without one.
    ///
    /// PostgreSQL decides: the value may have been added since.
    func doubt(_ write: StoredWrite, key: Value) -> SluiceError? {
        for (index, value) in values(write) {
            guard case .enumeration(_, let labels) = forms[index].storage,
                let other = Self.texts(value).first(where: { !labels.contains($0) })
            else { continue }
            let property = "\(type.name).\(type.properties[index].name)"
            let known = labels.prefix(50).joined(separator: ", ")
            return SluiceError(
                .writeNotAllowed,
                "\(type.name) \(StoreText.key(key)): \(property) cannot be \"\(other.prefix(100))\". Its values are \(known).")
        }
        return nil
    }

    private static func texts(_ value: Value) -> [String] {
        switch value {
        case .string(let text): [text]
        case .list(let elements): elements.compactMap { if case .string(let text) = $0 { text } else { nil } }
        default: []
        }
    }
}
