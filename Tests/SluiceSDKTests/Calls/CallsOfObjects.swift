import Foundation
import SluiceSDK

// The calls that RealmSwift has for objects and values, each overload once. That they compile is the contract.

@MainActor func callsOfObjects(_ person: Fellow, _ address: Lodging) {
    let _ = Fellow()
    let _ = Fellow(value: ["name": "x", "age": 3])
    let _ = Fellow(value: ["x", 3] as [Any])
    let _ = Lodging(value: ["street": "x"])
    let _ = Ping(value: ["text": "x"])
    let _: Realm? = person.realm
    let _: ObjectSchema = person.objectSchema
    let _: Bool = person.isInvalidated || person.isFrozen || address.isInvalidated || address.isFrozen
    let _: String = person.description
    let _: String? = Fellow.primaryKey()
    let _: [String] = Fellow.indexedProperties()
    let _: [String] = Fellow.ignoredProperties()
    let _: String = Fellow.className()
    let _: [String: String] = Fellow.propertiesMapping()
    let _: Bool = Fellow.shouldIncludeInDefaultSchema()
    let _: Any? = person["name"]
    person["name"] = "x"
    let _: Any? = address["street"]
    let _: List<DynamicObject> = person.dynamicList("friends")
    let _: MutableSet<DynamicObject> = person.dynamicMutableSet("friendSet")
    let _: Map<String, DynamicObject?> = person.dynamicMap("friendMap")
    let _: List<DynamicObject> = address.dynamicList("x")
    let _: MutableSet<DynamicObject> = address.dynamicMutableSet("x")
    let _: Bool = person.isSameObject(as: person)
    let _: Bool = address.isSameObject(as: address)
    let _: Bool = person == person
    let _: Set<Fellow> = [person]
    let _: Fellow = person.freeze()
    let _: Fellow? = person.thaw()
    let _: Lodging = address.freeze()
    let _: Lodging? = address.thaw()
    let _: Any? = person.value(forKey: "name")
    let _: Any? = person.value(forKeyPath: "friend.name")
    person.setValue("x", forKey: "name")
    person.setValuesForKeys(["name": "x"])
}

@MainActor func callsThatObserveObjects(_ person: Fellow, _ address: Lodging) async {
    let token: NotificationToken = person.observe { (change: ObjectChange<Fellow>) in
        switch change {
        case .error(let error): let _: any Error = error
        case .change(let object, let properties):
            let _: Fellow = object
            for p: PropertyChange in properties {
                let _: String = p.name
                let _: Any? = p.oldValue
                let _: Any? = p.newValue
            }
        case .deleted: break
        }
    }
    token.invalidate()
    let _: NotificationToken = person.observe(keyPaths: ["name"]) { (change: ObjectChange<Fellow>) in _ = change }
    _ = person.observe(keyPaths: ["name"], on: .main) { (change: ObjectChange<Fellow>) in _ = change }
    _ = person.observe(on: .main) { (change: ObjectChange<Fellow>) in _ = change }
    _ = person.observe(on: nil) { (change: ObjectChange<Fellow>) in _ = change }
    _ = person.observe(keyPaths: [\Fellow.name]) { (change: ObjectChange<Fellow>) in _ = change }
    _ = person.observe(keyPaths: [\.name, \.home?.street], on: .main) { (change: ObjectChange<Fellow>) in _ = change }
    _ = person.observe { change in _ = change }
    _ = person.observe { (change: ObjectChange<ObjectBase>) in _ = change }
    _ = address.observe { (change: ObjectChange<Lodging>) in _ = change }
    _ = address.observe(keyPaths: [\Lodging.street]) { (change: ObjectChange<Lodging>) in _ = change }
    let _: NotificationToken = await person.observe(on: MainActor.shared) { (actor: isolated MainActor, change: ObjectChange<Fellow>) in
        _ = change
    }
    _ = await person.observe(keyPaths: ["name"], on: Elsewhere.shared) { (actor: isolated Elsewhere, change: ObjectChange<Fellow>) in
        _ = change
    }
    _ = await person.observe(keyPaths: [\.name], on: Elsewhere.shared) { (actor: isolated Elsewhere, change: ObjectChange<Fellow>) in
        _ = change
    }
    _ = await address.observe(on: MainActor.shared) { _, _ in }
    let _: [String: Any] = person.dictionaryWithValues(forKeys: ["name"])
}

@MainActor func callsOfSchemas(_ person: Fellow) {
    let dynamic = person.realm!.dynamicObjects("Fellow").first!
    let _: Any? = dynamic["name"]
    dynamic["name"] = "x"
    let _: Any? = dynamic.name
    dynamic.name = "x"
    let _: List<DynamicObject> = dynamic.dynamicList("friends")
    let _: String = dynamic.objectSchema.className
    let schema: Schema = person.realm!.schema
    let _: [ObjectSchema] = schema.objectSchema
    let one: ObjectSchema? = schema["Fellow"]
    let _: [Property]? = one?.properties
    let _: String? = one?.className
    let _: Property? = one?.primaryKeyProperty
    let _: Property?? = one?["name"]
    let _: AnyClass? = one?.objectClass
    let _: Bool? = one?.isEmbedded
    let _: Bool? = one?.isAsymmetric
    if let p = one?["name"] {
        let _: String = p.name
        let _: String = p.columnName
        let _: PropertyType = p.type
        let _: Bool = p.isArray || p.isSet || p.isMap || p.isIndexed || p.isOptional
        let _: String? = p.objectClassName
        switch p.type {
        case .int, .bool, .string, .data, .any, .float, .double, .date, .object, .linkingObjects, .objectId, .decimal128, .UUID: break
        @unknown default: break
        }
        let _: Bool = p == p
        let _: String = p.description
    }
    let _: UInt64 = person.id
}

@MainActor func callsOfNumbersAndIds() {
    let _: ObjectId = ObjectId.generate()
    let _: ObjectId = ObjectId("5f1b5a5b5c5d5e5f60616263")
    let _: ObjectId? = try? ObjectId(string: "5f1b5a5b5c5d5e5f60616263")
    let _: ObjectId = ObjectId(timestamp: Date(), machineId: 1, processId: 2)
    let _: ObjectId = ObjectId()
    let id = ObjectId.generate()
    let _: Date = id.timestamp
    let _: String = id.stringValue
    let _: Bool = id < id || id <= id || id > id || id >= id || id == id
    let _: String = id.description
    let _: Decimal128 = 3
    let _: Decimal128 = 3.5
    let _: Decimal128 = "3.5"
    let _: Decimal128? = try? Decimal128(string: "3")
    let _: Decimal128 = Decimal128(value: 3)
    let _: Decimal128 = Decimal128(number: 3)
    let _: Decimal128 = Decimal128(3)
    let _: Decimal128 = Decimal128(3.5)
    let _: Decimal128? = Decimal128(exactly: 3)
    let d: Decimal128 = 4
    let _: Decimal128 = d + d - d * d / d
    var e = d
    e += d
    e -= d
    e *= d
    e /= d
    let _: Bool = d < d || d <= d || d > d || d >= d || d == d
    let _: Decimal128 = d.magnitude
    let _: Decimal128 = -d
    let _: Bool = d.isNaN || d.isSignaling || d.isSignalingNaN
    let _: Decimal = d.decimalValue
    let _: Decimal128 = Decimal128.min
    let _: Decimal128 = Decimal128.max
}

@MainActor func callsOfMixedValues(_ person: Fellow, _ id: ObjectId, _ d: Decimal128) {
    let v: AnyRealmValue = .int(3)
    _ = (
        v.intValue, v.boolValue, v.floatValue, v.doubleValue, v.stringValue, v.dataValue, v.dateValue, v.objectIdValue, v.decimal128Value,
        v.uuidValue, v.dictionaryValue, v.listValue, v.dynamicObject
    )
    let _: Fellow? = v.object(Fellow.self)
    let _: AnyRealmValue = AnyRealmValue()
    let _: AnyRealmValue = .fromArray([.int(3), .fromDictionary(["a": .none])])
    let _: AnyRealmValue = .object(person)
    let _: Set<AnyRealmValue> = [
        .none, .bool(true), .float(1), .double(1), .string(""), .data(Data()), .date(Date()), .objectId(id), .decimal128(d), .uuid(UUID()),
        .list(List()), .dictionary(Map()),
    ]
    person.any.listValue?[0] = .int(3)
    person.any.dictionaryValue?["a"] = .int(3)
    let _: SluiceSDK.SortDescriptor = .init(keyPath: "a", ascending: false)
    let _: SluiceSDK.SortDescriptor = .init(keyPath: \Fellow.name, ascending: false)
    let _: SluiceSDK.SortDescriptor = "name"
    let sd = SluiceSDK.SortDescriptor(keyPath: "a")
    let _: SluiceSDK.SortDescriptor = sd.reversed()
    _ = (sd.keyPath, sd.ascending, sd == sd, sd.description)
}
