import SluiceCore
import SluiceMerge
import SluiceReplica

/// Edits in place of the collections that are properties: what they cost does not grow with the collection.
extension _Place {
    /// The collection that the open transaction edits here; nil if none was edited yet.
    var shownCollection: EditedCollection? {
        guard parent == nil, !isGone, let row = owner._row, row.place == nil else { return nil }
        return row.core.transaction?.shownCollection(type: row.type, key: row.key, property: slot)
    }

    /// The collection that is here, to be edited in the open transaction. Each edit goes through `edit`.
    /// - Returns: nil if `write` has to change it: it is inside of another value, the object is gone, or its edits do not go together with what the transaction uploads of it.
    func editedCollection() -> EditedCollection? {
        guard parent == nil, !isGone, let row = owner._row, row.place == nil else { return nil }
        return row.core.editedCollection(row.type, row.key, slot)
    }

    /// Edits the collection that is here, and lets the Realm see it. The commit throws an error of it.
    func edit(_ body: () throws(SluiceError) -> Void) {
        guard let row = owner._row else { return }
        let wasFresh = row.isFresh
        row.core.edit(row.type, row.key, slot, body)
        if wasFresh { row.keepFresh(but: slot) }
    }

    /// Puts a value in place of an element in an edited collection.
    /// - Parameter change: of the value, so that others' changes of the rest stay.
    /// - Returns: false if there is no such collection or element.
    func put(_ value: Value, at step: Step, by change: ShownEdit) -> Bool {
        guard let collection = editedCollection(), collection.has(step.shown) else { return false }
        edit { () throws(SluiceError) in try collection.put(value, at: step.shown, by: change) }
        return true
    }

    /// Removes an element of an edited list.
    /// - Returns: false if there is no such list or element.
    func remove(at index: Int) -> Bool {
        guard let collection = editedCollection(), collection.has(.index(index)) else { return false }
        edit { () throws(SluiceError) in try collection.remove(at: index) }
        return true
    }
}

extension RealmCore {
    /// The row of an object, for an accessor: collections that the open transaction edits in place read as null in it.
    func accessorRow(_ type: Int, _ key: Value, moving: Bool = true) -> Row? {
        attempt(nil, moving: moving) { store throws(SluiceError) in try store.rowWithoutEdits(type: type, key: key) }
    }

    fileprivate func editedCollection(_ type: Int, _ key: Value, _ slot: Int) -> EditedCollection? {
        requireTransaction()
        guard let transaction, failure == nil else { return nil }
        settleLoops()
        // The write that is tried instead finds the error again, and the commit throws it.
        return try? transaction.editedCollection(type: type, key: key, property: slot)
    }

    fileprivate func edit(_ type: Int, _ key: Value, _ slot: Int, _ body: () throws(SluiceError) -> Void) {
        do throws(SluiceError) {
            try body()
        } catch {
            fail(error)
        }
        clock.generation += 1
        wrote(type, key, slot)
    }

    /// Whether all links of an edited collection were found to lead to objects, of which none was deleted since.
    func isAllShown(_ collection: EditedCollection) -> Bool {
        collection.deletionsWhenShown.map { $0 == transaction?.deletions } ?? false
    }

    /// Notes that all links of an edited collection lead to objects.
    func noteAllShown(_ collection: EditedCollection) { collection.deletionsWhenShown = transaction?.deletions }
}
