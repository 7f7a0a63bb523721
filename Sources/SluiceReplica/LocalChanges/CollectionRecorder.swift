import SluiceCore
import SluiceMerge

/// Records the edits of a collection of a synced file, as the gateway merges them: each with the names of its places.
final class CollectionRecorder {
    private unowned let transaction: WriteTransaction
    /// The collection's names; of the object's other properties it may have old values.
    private let object: EditedObject
    private let property: Property

    init(_ transaction: WriteTransaction, _ object: EditedObject, _ property: Property) {
        (self.transaction, self.object, self.property) = (transaction, object, property)
    }

    func record(_ changes: [ShownEdit.Change]) throws(SluiceError) { try record(ShownEdit(changes)) }

    /// - Throws: when a place is not there. The names may be wrong then, so others make their own.
    func record(_ edit: ShownEdit) throws(SluiceError) {
        // A later edit of another property has made another one, which does not have this edit.
        if transaction.edited[object.object] !== object { transaction.edited[object.object] = nil }
        do throws(SluiceError) {
            let edits = try object.perform(edit, on: property, transaction.local)
            transaction.record(edits, of: object, property.name)
        } catch {
            transaction.edited[object.object] = nil
            throw error
        }
    }

    /// The value of an element or entry; nil if there is none.
    func value(at step: ShownStep) -> Value? { object.value(of: property, at: step, transaction.local) }
}
