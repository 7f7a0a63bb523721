import SluiceCore
import SluiceReplica

/// The deletion of objects.
extension RealmCore {
    func delete(_ object: ObjectBase) {
        guard let row = object._row, row.core === self else {
            throwRealmException("Can only delete an object from the Realm it belongs to.")
        }
        if let place = row.place { return place.removeElement() }
        delete(row.type, [row.key])
    }

    func delete(_ type: Int, _ keys: [Value]) {
        change { transaction throws(SluiceError) in
            for key in keys { try transaction.delete(type: type, key: key) }
        }
        observations.deleted(type, keys)
    }
}
