import SluiceCore
import SluiceMerge
import SluiceReplica

/// Edits of collection properties in place: their cost does not grow with the collection.
extension _Place {
    /// The collection that the open transaction edits here; nil if it has not edited one yet.
    var shownCollection: EditedCollection? {
        guard parent == nil, !isGone, let row = owner._row, row.place == nil else { return nil }
        return row.core.reading.transaction?.shownCollection(type: row.type, key: row.key, property: slot)
    }

    /// Returns the collection to edit in the open transaction. Each edit must go through `edit`. The first call is O(elements).
    /// - Returns: nil if `write` must change it: it is inside another value, the object is gone, or the transaction uploads its whole value
    ///   before other edits.
    func editedCollection() -> EditedCollection? {
        guard parent == nil, !isGone, let row = owner._row, row.place == nil else { return nil }
        return row.core.transactions.editedCollection(row.type, row.key, slot)
    }

    /// Runs an edit and makes it visible to the Realm. The commit throws its error.
    func edit(_ body: () throws(SluiceError) -> Void) {
        guard let row = owner._row else { return }
        // Before the clock advances: a stale row must stay stale.
        let wasFresh = row.isFresh
        row.core.transactions.edit(row.type, row.key, slot, body)
        if wasFresh { row.keepFresh(but: slot) }
    }

    /// Replaces an element of an edited collection.
    /// - Parameter change: The change of the property, so that concurrent changes of other parts are kept.
    /// - Returns: `false` if there is no such collection or element.
    func put(_ value: Value, at step: Step, by change: ShownEdit) -> Bool {
        guard let collection = editedCollection(), collection.has(step.shown) else { return false }
        edit { () throws(SluiceError) in try collection.put(value, at: step.shown, by: change) }
        return true
    }

    /// Removes an element of an edited list.
    /// - Returns: `false` if there is no such list or element.
    func remove(at index: Int) -> Bool {
        guard let collection = editedCollection(), collection.has(.index(index)) else { return false }
        edit { () throws(SluiceError) in try collection.remove(at: index) }
        return true
    }
}
