import Foundation
import SluiceSDK
import Testing

/// Classes, values and questions that cannot be: the program ends with a text that says why.
@Suite struct ModelMisuseTests {
    @Test(arguments: ModelMisuse.allCases) func `misuse ends the program with a text that says what is wrong`(misuse: ModelMisuse) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [misuse = misuse as ModelMisuse] in
            try misuse.commit()
        }
        #expect(message(result).contains(misuse.text), "\(misuse): \(message(result))")
    }
}

/// Not of the classes of a Realm that names none.
private class Unlisted: Object {
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class TwoKeys: Unlisted {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted(primaryKey: true) var other: Int
}

private class YesOrNo: Unlisted {
    @Persisted(primaryKey: true) var _id: Bool
}

private class Daily: Unlisted {
    @Persisted var day: Date
    override class func primaryKey() -> String? { "day" }
}

private class OneName: Unlisted {
    @Persisted var name: String
    @Persisted var other: String
    override class func propertiesMapping() -> [String: String] { ["other": "name"] }
}

private class KeyInside: EmbeddedObject {
    @Persisted(primaryKey: true) var _id: Int
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class WrongIndex: Unlisted {
    @Persisted var name: String
    override class func indexedProperties() -> [String] { ["naem"] }
}

private class NoOrigin: Unlisted {
    @Persisted var friend: NoOrigin?
    @Persisted var fans: LinkingObjects<NoOrigin>
}

private class OldHerd: Unlisted {
    @Persisted(primaryKey: true) var _id: Int
    let horses = List<OldHerd>()
}

private class OldChildren: Unlisted {
    @Persisted(primaryKey: true) var _id: Int
    let _children = List<OldChildren>()
}

private class OldLazy: Unlisted {
    @Persisted(primaryKey: true) var _id: Int
    lazy var tags = List<String>()
}

private class OldMaybe: Unlisted {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var friend: OldMaybe?
    var fans: LinkingObjects<OldMaybe>? = LinkingObjects(fromType: OldMaybe.self, property: "friend")
}

private class OldMaybeTags: Unlisted {
    @Persisted(primaryKey: true) var _id: Int
    var tags: MutableSet<String>?
}

private class OldTags: Unlisted {
    @Persisted(primaryKey: true) var _id: Int
    var tags = MutableSet<String>()
}

private class OldCounts: Unlisted {
    @Persisted(primaryKey: true) var _id: Int
    var counts = Map<String, Int>()
}

private class OldFriend: Unlisted {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var friend: OldFriend?
    let fans = LinkingObjects(fromType: OldFriend.self, property: "friend")
}

private class OldName: Unlisted {
    var name = ""
    var born: Date?
}

private class Needy: Unlisted {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var name: String?
    override class func requiredProperties() -> [String] { ["name"] }
}

private class NeedsLink: Unlisted {
    @Persisted var friend: NeedsLink?
    override class func requiredProperties() -> [String] { ["friend"] }
}

private class NeedsLinks: Unlisted {
    @Persisted var friends: List<NeedsLinks>
    @Persisted var byName: Map<String, NeedsLinks?>
    override class func requiredProperties() -> [String] { ["friends", "byName"] }
}

private enum Nothing: String, PersistableEnum {
    case something
    static var allCases: [Nothing] { [] }
}

private class Caseless: Unlisted {
    @Persisted var nothing: Nothing
}

private struct Never1: FailableCustomPersistable {
    init?(persistedValue: Int) { nil }
    var persistableValue: Int { 1 }
}

private class Unmakeable: Unlisted {
    @Persisted var never: Never1
}

private class Peek: Projection<Horse> {
    @Projected(\Horse.stable?.city) var city
    @Projected(\Horse.rider) var rider

    class Walk: Projection<Walker> {
        @Projected(\Walker.hounds.projectTo.description) var texts
    }
}

enum ModelMisuse: String, CaseIterable, Codable {
    // Classes
    case hasTwoKeys, hasKeyOfBool, hasKeyOfDate, hasOneNameTwice, embedsKey, namesUnknownIndex, requiresLink, requiresLinks,
        hasNoOrigin, hasNoCases, cannotBeMade
    case hasOldList, hasOldListWithUnderscore, hasOldLazyList, hasOldSet, hasOldOptionalSet, hasOldMap, hasOldInverse,
        hasOldOptionalInverse, hasOldValues
    // Values
    case lacksRequired, createsFromText, setsMixedSet, parsesBadId, makesDecimalOfText, makesDecimalOfObject
    // Names
    case asksForListOfText, asksUnmanagedForList, asksDynamicByWrongKey, goesPastValue, usesUnknownOperator, setsOnValues, asksTextForLink
    // Questions
    case sumsTexts, asksNumberAsDate, averagesUnknown, comparesOverTwoCollections, asksComputed, likesWithoutMarks
    case evaluatesUnmanaged, foldsNumber, foldsOrder
    // Observing and passing on
    case observesValuesByPath, observesThroughValue, observesComputed, observesStoredOfView, setsThroughLink, setsThroughLinks
    case passesUnmanaged, passesDeleted, thawsUnmanaged, beginsOverLimit
    // Subscriptions
    case subscribesToBlock, ordersByNothing, hearsOfLeavingNowhere, hearsOfStateNowhere

    var text: String {
        switch self {
        case .hasTwoKeys: "Properties of 'TwoKeys' are both declared as primary key; only one can be."
        case .hasKeyOfBool:
            "Property '_id' cannot be made the primary key of 'YesOrNo' because it is not a 'string', 'int', 'objectId', or 'uuid' property."
        case .hasKeyOfDate: "Property 'day' cannot be made the primary key of 'Daily'"
        case .hasOneNameTwice: "Two properties of 'OneName' have the same name in the file."
        case .embedsKey: "Embedded class 'KeyInside' cannot have a primary key."
        case .namesUnknownIndex: "Class 'WrongIndex' names a property 'naem' that it does not have."
        case .requiresLink: "Object properties cannot be made required, but '+[NeedsLink requiredProperties]' included 'friend'"
        case .requiresLinks: "Object properties cannot be made required, but '+[NeedsLinks requiredProperties]' included 'byName'"
        case .hasNoOrigin: "Property 'NoOrigin.fans' of type LinkingObjects has no origin property name."
        case .hasOldList:
            "Property 'OldHerd.horses' is declared without @Persisted, so it would not be stored. "
                + "Write: @Persisted var horses: List<OldHerd>"
        case .hasOldListWithUnderscore: "Write: @Persisted var _children: List<OldChildren>"
        case .hasOldLazyList:
            "Property 'OldLazy.tags' is declared without @Persisted, so it would not be stored. Write: @Persisted var tags: List<String>"
        case .hasOldOptionalSet:
            "Property 'OldMaybeTags.tags' is declared without @Persisted, so it would not be stored. "
                + "Write: @Persisted var tags: MutableSet<String>"
        case .hasOldOptionalInverse: "Write: @Persisted(originProperty: \"friend\") var fans: LinkingObjects<OldMaybe>"
        case .hasOldSet: "Write: @Persisted var tags: MutableSet<String>"
        case .hasOldMap: "Write: @Persisted var counts: Map<String, Int>"
        case .hasOldInverse: "Write: @Persisted(originProperty: \"friend\") var fans: LinkingObjects<OldFriend>"
        case .hasOldValues: "Write: @Persisted var name: String"
        case .hasNoCases: "The enumeration Nothing has no cases."
        case .cannotBeMade: "Failed to default construct a Never1 using the default value for persisted type Int."
        case .lacksRequired: "Invalid null value for the required property 'Needy.name'."
        case .createsFromText: "Invalid value 'text' to initialize object of type 'Horse': expected a dictionary or an array."
        case .setsMixedSet: "A set cannot contain collections."
        case .parsesBadId: "is not 24 hexadecimal digits."
        case .makesDecimalOfText: "Cannot convert value 'many' to Decimal128"
        case .makesDecimalOfObject: "to Decimal128"
        case .asksForListOfText: "Property 'Horse.name' is no list of objects."
        case .asksUnmanagedForList: "Dynamic collections need an object that a Realm manages."
        case .asksDynamicByWrongKey: "Invalid primary key"
        case .goesPastValue: "The key path 'length' goes on after a value that has no properties."
        case .usesUnknownOperator: "Unsupported KVC operator '@median'."
        case .setsOnValues: "'Int' has no properties to set."
        case .sumsTexts: "Cannot calculate '@sum' of property 'name': it is no number"
        case .asksNumberAsDate: "does not fit into Date."
        case .averagesUnknown: "Property 'naem' not found in object of type 'Horse'"
        case .comparesOverTwoCollections: "A subquery can be about one collection only; join several subqueries instead."
        case .asksComputed: "leads to no @Persisted property of Horse."
        case .likesWithoutMarks: "[d]"
        case .evaluatesUnmanaged: "A predicate with a format can be evaluated with objects that a Realm manages only."
        case .observesValuesByPath: "Key paths can be given for collections of objects only."
        case .observesThroughValue: "Invalid key path 'name.length': property 'Horse.name' is not a link."
        case .observesComputed: "leads to no @Persisted property."
        case .observesStoredOfView: "leads to no @Projected property."
        case .setsThroughLink, .setsThroughLinks:
            "The projected property cannot be set: its key path goes through a value that may be missing."
        case .passesUnmanaged: "Only managed objects may be wrapped as thread safe."
        case .passesDeleted: "Cannot construct reference to invalidated object"
        case .thawsUnmanaged: "Unmanaged objects cannot be thawed."
        case .asksTextForLink: "Property 'Horse.name' is no link that is stored."
        case .foldsNumber: "Unsupported comparison between type 'string' of 'name' and type 'int'"
        case .foldsOrder: "Operator '<' is not supported with [d]."
        case .beginsOverLimit: "Number of active versions (2) in the Realm exceeded the limit of 1"
        case .subscribesToBlock:
            "Only results of a class can be subscribed to, without block predicates and diacritic insensitive comparisons."
        case .ordersByNothing: "Cannot sort a subscription on 'Task' by 'length': it has no such property."
        case .hearsOfLeavingNowhere: "Only Realms of the main thread, a queue or an actor can tell what leaves."
        case .hearsOfStateNowhere: "Only Realms of the main thread, a queue or an actor can tell a subscription's state."
        }
    }

    /// Ends the program.
    func commit() throws {
        let folder = try TemporaryFolder()
        func open(_ type: ObjectBase.Type) throws { _ = try Realm(configuration: folder.configuration([type])) }
        switch self {
        case .hasTwoKeys: try open(TwoKeys.self)
        case .hasOldList: try open(OldHerd.self)
        case .hasOldListWithUnderscore: try open(OldChildren.self)
        case .hasOldLazyList: try open(OldLazy.self)
        case .hasOldOptionalSet: try open(OldMaybeTags.self)
        case .hasOldOptionalInverse: try open(OldMaybe.self)
        case .hasOldSet: try open(OldTags.self)
        case .hasOldMap: try open(OldCounts.self)
        case .hasOldInverse: try open(OldFriend.self)
        case .hasOldValues: try open(OldName.self)
        case .hasKeyOfBool: try open(YesOrNo.self)
        case .hasKeyOfDate: try open(Daily.self)
        case .hasOneNameTwice: try open(OneName.self)
        case .embedsKey: try open(KeyInside.self)
        case .namesUnknownIndex: try open(WrongIndex.self)
        case .requiresLink: try open(NeedsLink.self)
        case .requiresLinks: try open(NeedsLinks.self)
        case .hasNoOrigin: try open(NoOrigin.self)
        case .hasNoCases: _ = Caseless().nothing
        case .cannotBeMade: _ = Unmakeable().never
        case .lacksRequired:
            let realm = try Realm(configuration: folder.configuration([Needy.self]))
            try realm.write { _ = realm.create(Needy.self, value: ["_id": 1]) }
        case .subscribesToBlock, .ordersByNothing, .hearsOfLeavingNowhere, .hearsOfStateNowhere: try commit(synced: folder)
        case .beginsOverLimit:
            var configuration = folder.configuration([Horse.self])
            configuration.maximumNumberOfActiveVersions = 1
            let realm = try Realm(configuration: configuration)
            let frozen = realm.freeze()
            for id in 0..<2 {
                if frozen.isFrozen { realm.beginWrite(); realm.create(Horse.self, value: ["_id": id]); try realm.commitWrite() }
            }
        default: try commit(local: folder)
        }
    }

    private func commit(local folder: TemporaryFolder) throws {
        let realm = try Realm(configuration: folder.configuration([Horse.self, Walker.self, Mixed.self]))
        let horse = try realm.write {
            for id in 1...2 { realm.create(Horse.self, value: ["_id": id, "name": "a", "wins": 100]) }
            return realm.objects(Horse.self)[0]
        }
        let walkers = realm.objects(Walker.self)
        switch self {
        case .createsFromText: _ = Horse(value: "text")
        case .setsMixedSet: try realm.write { realm.create(Mixed.self, value: ["_id": 1]).set.insert(.fromArray([.int(1)])) }
        case .parsesBadId: _ = ObjectId("nonsense")
        case .makesDecimalOfText: _ = Decimal128(value: "many")
        case .makesDecimalOfObject: _ = Decimal128(value: NSObject())
        case .asksForListOfText: _ = horse.dynamicList("name")
        case .asksUnmanagedForList: _ = Walker().dynamicList("hounds")
        case .asksDynamicByWrongKey: _ = realm.dynamicObject(ofType: "Horse", forPrimaryKey: NSObject())
        case .goesPastValue: _ = horse.value(forKeyPath: "name.length")
        case .usesUnknownOperator: _ = realm.objects(Horse.self).value(forKeyPath: "@median.wins")
        case .setsOnValues:
            let walker = try realm.write { realm.create(Walker.self, value: ["_id": 1, "scores": [1]]) }
            try realm.write { walker.scores.setValue(1, forKey: "x") }
        case .sumsTexts: let _: Int = realm.objects(Horse.self).sum(ofProperty: "name")
        case .asksNumberAsDate: let _: Date? = realm.objects(Horse.self).max(ofProperty: "wins")
        case .averagesUnknown: let _: Double? = realm.objects(Horse.self).average(ofProperty: "naem")
        case .comparesOverTwoCollections:
            _ = walkers.where { ($0.hounds.age > 1 && $0.kennels.beds > 1).count > 0 }
        case .asksComputed: _ = realm.objects(Horse.self).where { $0.rider == "x" }
        case .likesWithoutMarks: _ = realm.objects(Horse.self).filter("name LIKE[d] 'a'").count
        case .evaluatesUnmanaged: _ = NSPredicate(format: "wins > 1").evaluate(with: Horse())
        case .observesValuesByPath:
            let walker = try realm.write { realm.create(Walker.self, value: ["_id": 1]) }
            _ = walker.scores.observe(keyPaths: ["x"]) { _ in }
        case .observesThroughValue: _ = realm.objects(Horse.self).observe(keyPaths: ["name.length"]) { _ in }
        case .observesComputed: _ = realm.objects(Horse.self).observe(keyPaths: [\Horse.rider]) { _ in }
        case .observesStoredOfView: _ = Peek(projecting: horse).observe(keyPaths: [\Peek.rider]) { _ in }
        case .setsThroughLink: try realm.write { Peek(projecting: horse).city = "Ulm" }
        case .setsThroughLinks:
            let walker = try realm.write { realm.create(Walker.self, value: ["_id": 1, "hounds": [["_id": 1]]]) }
            try realm.write { Peek.Walk(projecting: walker).texts[0] = "Ulm" }
        case .passesUnmanaged: _ = ThreadSafe(wrappedValue: Horse())
        case .passesDeleted:
            try realm.write { realm.delete(horse) }
            _ = ThreadSafeReference(to: horse)
        case .thawsUnmanaged: _ = Horse().thaw()
        case .asksTextForLink: _ = horse.linkStatus(of: "name")
        case .foldsNumber: _ = realm.objects(Horse.self).filter("name ==[d] 3").count
        case .foldsOrder: _ = realm.objects(Horse.self).filter("name <[d] 'b'").count
        default: break
        }
    }

    private func commit(synced folder: TemporaryFolder) throws {
        let realm = try Realm(configuration: folder.synced())
        switch self {
        case .subscribesToBlock: realm.objects(Task.self).filter(NSPredicate { _, _ in true }).unsubscribe()
        case .hearsOfLeavingNowhere: _ = realm.observeLeaving { _ in }
        case .hearsOfStateNowhere: _ = realm.objects(Task.self).subscribe(named: "tasks").observe(\.state) { _ in }
        default:
            let set = realm.subscriptions
            set.update {
                let options = SyncSubscriptionOptions(limit: 1, sort: [SortDescriptor(keyPath: "length")])
                try? set.append(QuerySubscription<Task>(), options: options)
            }
        }
    }
}
