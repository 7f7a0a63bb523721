import SluiceCore
import SluiceRealm
import SluiceWire

// The commits that the client receives.
extension BridgeContent {
    /// Returns the instructions for a change by others.
    mutating func take(_ change: BridgeCommit.Change, _ place: Place) throws(SluiceError) -> BridgeGroup {
        let object = change.object
        switch (change.event, change.row) {
        case (.entered, let row?): return .entering(try enter(object, row, place))
        case (.updated, let row?): return try replace(object, row, change.changed.map { names($0, of: object.type) }, place)
        default: return memory.view.contains(object) ? leave(object, place) : .none
        }
    }

    /// Takes a commit by others that changes objects of the client alone, with the bytes that all such clients receive.
    /// - Returns: nil if the client's entry may differ from those of others. Nothing is recorded then.
    mutating func takeShared(_ commit: BridgeCommit, _ place: Place) throws(SluiceError) -> SharedEntry.Content? {
        guard commit.changeset == 0, sentSchema == bridgeSchema.hash else { return nil }
        for change in commit.changes {
            guard change.event == .updated, change.row != nil, memory.view.contains(change.object) else { return nil }
        }
        guard let content = try commit.shared.content({ () throws(SluiceError) in try encode(commit) }) else { return nil }
        for (change, names) in zip(commit.changes, content.names) {
            if let row = change.row { noteReplaced(change.object, row, names, place) }
        }
        return content
    }

    /// Encodes updates for every client that holds the objects; nil for values that each entry prepares by itself.
    private func encode(_ commit: BridgeCommit) throws(SluiceError) -> SharedEntry.Content? {
        var piece = BridgePiece()
        var all: [Set<String>?] = []
        for change in commit.changes {
            guard let row = change.row else { return nil }
            let names = change.changed.map { self.names($0, of: change.object.type) }
            let changed = try writer.replace(change.object, row, names, number: 0)
            if changed.hasContainers { return nil }
            try piece.append(.changed(changed))
            all.append(names)
        }
        return SharedEntry.Content(changeset: piece.changeset, operations: piece.operations, isEmpty: piece.isEmpty, names: all)
    }

    private func names(_ numbers: [UInt32], of type: String) -> Set<String> {
        guard let type = schema[type] else { return [] }
        return Set(numbers.compactMap { number in type.index(ofID: number).map { type.properties[$0].name } })
    }

    /// Returns the instructions for the writer of a change.
    ///
    /// The client has its own change. It receives the properties that the gateway wrote in addition, and after a conflict all that the
    /// changeset wrote.
    mutating func takeOwn(
        _ change: BridgeCommit.Change, _ own: OwnChangeset.Object, of changeset: UInt64, isConflict: Bool, _ place: Place
    ) throws(SluiceError) -> BridgeGroup {
        let object = change.object
        // Noted first: the client may never receive the entry, and has its own change all the same.
        if own.isDeleted || own.isCreated { make(object, isHeld: !own.isDeleted) }
        guard let row = change.row, change.event.hasRow else {
            // An object that the changeset deleted is gone already.
            return own.isDeleted && change.event == .deleted ? .none : leave(object, place)
        }
        let isNew = change.changed == nil && change.event == .entered
        guard own.isCreated ? isNew : memory.view.contains(object) else { return .entering(try enter(object, row, place)) }
        if own.isCreated { lists.settle(object, createdBy: changeset) }
        var names = isConflict ? own.written : []
        names.formUnion(amended(change, row, own, isNew: isNew))
        return names.isEmpty ? .none : try replace(object, row, names, place)
    }

    /// Returns the properties that have another value than the changeset gave them, or that may have one.
    private func amended(_ change: BridgeCommit.Change, _ row: Row, _ own: OwnChangeset.Object, isNew: Bool) -> Set<String> {
        guard let type = schema[change.object.type] else { return [] }
        let changed = change.changed.map { names($0, of: type.name) }
        var amended: Set<String> = []
        for (index, property) in type.properties.enumerated() where index != type.primaryKey {
            guard let value = row[index] else { continue }
            if let wanted = own.values[property.name] {
                if wanted != value { amended.insert(property.name) }
            } else if own.written.contains(property.name) {
                // Edits and additions without an effect may have lost to a write that the stream does not show.
                let isChanged = changed?.contains(property.name) ?? true
                if !isChanged || own.converted.contains(property.name) { amended.insert(property.name) }
            } else {
                // A new object has empty values otherwise.
                let isChanged = isNew ? value != property.emptyValue && !value.isNull : changed?.contains(property.name) ?? true
                if isChanged { amended.insert(property.name) }
            }
        }
        return amended
    }
}
