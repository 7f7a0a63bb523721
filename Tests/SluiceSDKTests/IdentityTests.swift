import SluiceSDK
import Testing

private class Seat: Object, ObjectKeyIdentifiable {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var legs: List<Leg>
    @Persisted var byName: Map<String, Leg?>
}

private class Leg: EmbeddedObject, ObjectKeyIdentifiable {
    @Persisted var length: Int
}

/// It has an `id` of its own.
private class Guest: Object, ObjectKeyIdentifiable {
    @Persisted(primaryKey: true) var id: ObjectId
}

private class Place: Projection<Seat>, ObjectKeyIdentifiable {
    @Projected(\Seat._id) var number
}

/// What an app's lists tell elements apart by.
@Suite struct IdentityTests {
    @Test func `what stands for one row has one id, and other rows have others`() throws {
        let folder = try TemporaryFolder()
        let realm = try Realm(configuration: folder.configuration([Seat.self]))
        let (first, second) = try realm.write {
            let first = realm.create(Seat.self, value: ["_id": 1, "legs": [[1], [1]], "byName": ["a": [1]]] as [String: Any])
            return (first, realm.create(Seat.self, value: ["_id": 2, "legs": [[1]]] as [String: Any]))
        }
        let again = try #require(realm.object(ofType: Seat.self, forPrimaryKey: 1))
        #expect(again.id == first.id && first.freeze().id == first.id && Place(projecting: again).id == first.id)
        let legs = try Array(first.legs) + Array(second.legs) + [#require(first.byName["a"]).unsafelyUnwrapped]
        #expect(Set(legs.map(\.id) + [first.id, second.id]).count == 6 && first.legs[1].id == first.legs[1].id)
        let unmanaged = [Seat(), Seat()]
        #expect(unmanaged[0].id != unmanaged[1].id && unmanaged[0].id == unmanaged[0].id)
    }

    @Test func `a class's own id goes before`() {
        func id<T: Identifiable>(of value: T) -> T.ID { value.id }
        let guest = Guest()
        let own: ObjectId = guest.id
        #expect(own == guest.id && id(of: guest) == id(of: guest))
    }
}
