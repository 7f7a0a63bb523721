import Foundation
import SluiceSDK
import Testing

/// What RealmSwift answers with an Objective-C exception ends the program here, with the same words.
@Suite struct MisuseTests {
    @Test(arguments: Misuse.allCases) func `misuse ends the program with a text that says what is wrong`(misuse: Misuse) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [misuse = misuse as Misuse] in
            try misuse.commit()
        }
        #expect(message(result).contains(misuse.text), "\(misuse): \(message(result))")
    }
}

enum Misuse: String, CaseIterable, Codable {
    // Objects
    case writesOutsideOfTransaction, changesKey, writesToDeleted, addsDeleted, addsOfOtherRealm, deletesOfOtherRealm, deletesUnmanaged
    case addsUnknownClass, readsUnknownClass, namesUnknownClass, namesUnknownProperty, createsWithUnknownProperty, createsWithWrongType
    case createsFromTooMany, asksByWrongKey
    // Collections
    case readsBehindEnd, removesTooMany, setsBadMapKey, addsBadMapKey, createsBadMapKey, assignsBadMapKey, usesInvalidatedResults
    // Realms
    case commitsNothing, freezesInTransaction, copiesInTransaction, writesReadOnly, observesReadOnly, observesFrozen, refreshesFrozen
    // Subscriptions
    case subscribesLocal, appendsOutsideOfUpdate, removesOutsideOfUpdate, updatesWithinUpdate, updatesWithinWrite, appendsNameTwice
    case asksForNegativeIndex
    case asksBehindEndOfSet, changesClassOfQuery, changesGoneQuery, subscribesToBlock, appendsNameOfOtherClass
    case changesOutsideOfUpdate, removesHandleOutsideOfUpdate, removesQueryOutsideOfUpdate, removesAllOutsideOfUpdate
    case removesClassOutsideOfUpdate

    /// What the program says at its end.
    var text: String {
        switch self {
        case .writesOutsideOfTransaction: "Cannot modify managed objects outside of a write transaction."
        case .changesKey: "Primary key can't be changed after an object is inserted."
        case .writesToDeleted: "Object has been deleted or invalidated."
        case .addsDeleted: "Adding a deleted or invalidated object to a Realm is not permitted"
        case .addsOfOtherRealm: "Object is already managed by another Realm. Use create instead to copy it into this Realm."
        case .deletesOfOtherRealm, .deletesUnmanaged: "Can only delete an object from the Realm it belongs to."
        case .addsUnknownClass, .readsUnknownClass: "Object type 'Mixed' is not managed by the Realm"
        case .namesUnknownClass: "Object type 'Nobody' is not managed by the Realm"
        case .namesUnknownProperty, .createsWithUnknownProperty: "Invalid property name 'naem' for class 'Horse'."
        case .createsWithWrongType: "Invalid value 'many' of type 'String' for property 'Horse.wins'."
        case .createsFromTooMany: "Invalid array input: more values (9) than properties"
        case .asksByWrongKey: "Invalid primary key"
        case .readsBehindEnd: "Index 0 is out of bounds (must be less than 0)."
        case .removesTooMany: "It is not possible to remove 3 elements from a list of 0."
        case .setsBadMapKey, .createsBadMapKey: "Invalid key '$a'"
        case .addsBadMapKey, .assignsBadMapKey: "Invalid key 'a.b': the key of a Map cannot begin with '$' or contain '.'."
        case .usesInvalidatedResults: "Access to invalidated Results objects"
        case .commitsNothing: "Can't commit a non-existing write transaction"
        case .freezesInTransaction: "Cannot freeze a Realm in a write transaction."
        case .copiesInTransaction: "Cannot write a copy of a Realm in a write transaction."
        case .writesReadOnly: "Can't perform transactions on read-only Realms."
        case .observesReadOnly: "Read-only Realms do not change and do not have change notifications."
        case .observesFrozen: "Frozen Realms do not change and do not have change notifications."
        case .refreshesFrozen: "Auto-refresh cannot be enabled for frozen Realms."
        case .subscribesLocal: "This Realm was not configured with flexible sync"
        case .appendsOutsideOfUpdate, .removesOutsideOfUpdate, .changesOutsideOfUpdate, .removesHandleOutsideOfUpdate,
            .removesQueryOutsideOfUpdate, .removesAllOutsideOfUpdate, .removesClassOutsideOfUpdate:
            "Can only add, remove, or update subscriptions within a write subscription block."
        case .appendsNameTwice, .appendsNameOfOtherClass:
            "A subscription named 'a' already exists. If you meant to update the existing subscription please use the `update` method."
        case .asksForNegativeIndex: "Index -1 is out of bounds"
        case .asksBehindEndOfSet: "Index 0 is out of bounds (must be less than 0)."
        case .updatesWithinWrite: "Cannot update subscriptions within a write transaction of their Realm"
        case .updatesWithinUpdate: "Cannot initiate a write transaction on subscription set that is already being updated."
        case .changesGoneQuery: "Cannot update a non-existent subscription."
        case .subscribesToBlock: "Block predicates and diacritic insensitive comparisons are not supported in subscriptions."
        case .changesClassOfQuery: "Updating a subscription query of a different Object Type is not allowed."
        }
    }

    /// Ends the program.
    func commit() throws {
        let folder = try TemporaryFolder()
        switch self {
        case .subscribesLocal, .appendsOutsideOfUpdate, .removesOutsideOfUpdate, .updatesWithinUpdate, .updatesWithinWrite,
            .appendsNameTwice,
            .asksForNegativeIndex, .asksBehindEndOfSet, .changesClassOfQuery, .changesGoneQuery, .subscribesToBlock,
            .appendsNameOfOtherClass, .changesOutsideOfUpdate, .removesHandleOutsideOfUpdate, .removesQueryOutsideOfUpdate,
            .removesAllOutsideOfUpdate, .removesClassOutsideOfUpdate:
            try commit(synced: folder)
        case .writesReadOnly, .observesReadOnly: try commit(readOnly: folder)
        default: try commit(local: folder)
        }
    }

    private func commit(local folder: TemporaryFolder) throws {
        let realm = try Realm(configuration: folder.configuration([Horse.self, Crowd.self]))
        let (horse, crowd) = try realm.write {
            (realm.create(Horse.self, value: ["_id": 1, "name": "a"]), realm.create(Crowd.self, value: ["_id": 1]))
        }
        let other = try TemporaryFolder()
        func otherRealm() throws -> Realm { try Realm(configuration: other.configuration([Horse.self])) }
        if self == .writesOutsideOfTransaction { horse.name = "b" }
        if self == .commitsNothing { try realm.commitWrite() }
        if self == .observesFrozen { _ = realm.freeze().observe { _, _ in } }
        if self == .refreshesFrozen { realm.freeze().autorefresh = true }
        if self == .usesInvalidatedResults {
            let results = realm.objects(Horse.self)
            realm.invalidate()
            _ = results.count
        }
        try realm.write {
            switch self {
            case .changesKey: horse._id = 2
            case .writesToDeleted, .addsDeleted:
                realm.delete(horse)
                if self == .addsDeleted { realm.add(horse) } else { horse.name = "b" }
            case .addsOfOtherRealm: try otherRealm().write { try otherRealm().add(horse) }
            case .deletesOfOtherRealm: try otherRealm().write { try otherRealm().delete(horse) }
            case .deletesUnmanaged: realm.delete(Horse())
            case .addsUnknownClass: realm.add(Mixed())
            case .readsUnknownClass: _ = realm.objects(Mixed.self)
            case .namesUnknownClass: _ = realm.dynamicObjects("Nobody")
            case .namesUnknownProperty: horse["naem"] = "b"
            case .createsWithUnknownProperty: _ = realm.create(Horse.self, value: ["_id": 2, "naem": "b"])
            case .createsWithWrongType: _ = realm.create(Horse.self, value: ["_id": 2, "wins": "many"])
            case .createsFromTooMany: _ = realm.create(Horse.self, value: [1, 2, 3, 4, 5, 6, 7, 8, 9])
            case .asksByWrongKey: _ = realm.object(ofType: Horse.self, forPrimaryKey: NSObject())
            case .readsBehindEnd: _ = crowd.friends[0]
            case .removesTooMany: crowd.friends.removeLast(3)
            case .setsBadMapKey: crowd.intMap["$a"] = 1
            case .createsBadMapKey: realm.create(Crowd.self, value: ["_id": 2, "intMap": ["$a": 1]])
            case .addsBadMapKey, .assignsBadMapKey:
                let map = Map<String, Int>()
                map["a.b"] = 1
                let new = Crowd(value: ["_id": 2])
                if self == .assignsBadMapKey { crowd.intMap = map } else { new.intMap = map }
                realm.add(new)
            case .freezesInTransaction: _ = horse.freeze()
            case .copiesInTransaction: try realm.writeCopy(toFile: other.url.appendingPathComponent("copy.realm"))
            default: break
            }
        }
    }

    private func commit(readOnly folder: TemporaryFolder) throws {
        var configuration = folder.configuration([Horse.self])
        do { _ = try Realm(configuration: configuration) }
        configuration.readOnly = true
        let realm = try Realm(configuration: configuration)
        if self == .writesReadOnly { realm.beginWrite() }
        _ = realm.objects(Horse.self).observe { _ in }
    }

    private func commit(synced folder: TemporaryFolder) throws {
        if self == .subscribesLocal { _ = try Realm(configuration: folder.local).subscriptions }
        let realm = try Realm(configuration: folder.synced())
        let set = realm.subscriptions
        if self == .updatesWithinWrite { try realm.write { set.update {} } }
        if self == .appendsOutsideOfUpdate { set.append(QuerySubscription<Task>(name: "a")) }
        if self == .removesOutsideOfUpdate { set.remove(named: "a") }
        if self == .asksForNegativeIndex { _ = set[-1] }
        if self == .asksBehindEndOfSet { _ = set[0] }
        set.update {
            set.append(QuerySubscription<Task>(name: "a"))
            set.append(QuerySubscription<Team>())
            if self == .updatesWithinUpdate { set.update {} }
            if self == .appendsNameTwice { set.append(QuerySubscription<Task>(name: "a")) }
            if self == .subscribesToBlock { set.append(QuerySubscription<Task>(where: NSPredicate { _, _ in true })) }
        }
        switch self {
        case .appendsNameOfOtherClass: set.update { set.append(QuerySubscription<Team>(name: "a")) }
        case .changesOutsideOfUpdate: set.first(named: "a")?.updateQuery(toType: Task.self)
        case .removesHandleOutsideOfUpdate: if let a = set.first { set.remove(a) }
        case .removesQueryOutsideOfUpdate: set.remove(ofType: Team.self, where: "TRUEPREDICATE")
        case .removesAllOutsideOfUpdate: set.removeAll()
        case .removesClassOutsideOfUpdate: set.removeAll(ofType: Task.self)
        default: break
        }
        if self == .changesGoneQuery {
            set.update {
                set.removeAll(unnamedOnly: true)
                set.first(ofType: Team.self, where: "TRUEPREDICATE")?.updateQuery(to: "teamName == 'a'")
            }
        }
        set.update { set.first(named: "a")?.updateQuery(toType: Team.self) }
    }
}
