import Foundation
import SluiceSDK

// The calls that RealmSwift has for maps and sections, each overload once. That they compile is the contract.

@MainActor func callsOfMaps(_ person: Fellow) {
    callsOfAKeyedCollection(person.friendMap)
    let map = person.friendMap
    let fresh = Map<String, Int>()
    _ = fresh
    map["a"] = person
    map["a"] = nil
    let _: Fellow?? = map["a"]
    let _: Fellow?? = map.object(forKey: "a")
    let _: Int? = person.numMap["x"]
    person.numMap["x"] = 3
    person.numMap.updateValue(3, forKey: "x")
    person.numMap.removeObject(for: "x")
    person.numMap.removeAll()
    person.numMap.merge(["x": 3], uniquingKeysWith: { $1 })
    person.numMap.merge(person.numMap, uniquingKeysWith: { $0 + $1 })
    person.numMap.merge([("x", 3)]) { $1 }
    for entry in person.numMap { let _: String = entry.key; let _: Int = entry.value }
    for (key, value) in person.numMap.asKeyValueSequence() { let _: String = key; let _: Int = value }
    let _: [String] = person.numMap.keys
    let _: [Int] = person.numMap.values
    let _: Int? = person.numMap.min()
    let _: Int? = person.numMap.max()
    let _: Int = person.numMap.sum()
    let _: Double? = person.numMap.average()
}

@MainActor func callsOfMapsAsResults(_ person: Fellow, _ map: Map<String, Fellow?>) {
    let _: Results<Int> = person.numMap.sorted(ascending: true)
    let _: Results<Int> = person.numMap.sorted()
    let _: Results<Int> = person.numMap.filter("self > 3")
    let _: Results<Int> = person.numMap.filter(NSPredicate(format: "self > 3"))
    let _: Results<Int> = person.numMap.where { $0 > 3 }
    let _: Results<Int> = person.numMap.distinct()
    let _: Results<Fellow?> = map.sorted(byKeyPath: "age", ascending: true)
    let _: Results<Fellow?> = map.sorted(by: [SluiceSDK.SortDescriptor(keyPath: "age")])
    let _: Results<Fellow?> = map.distinct(by: ["age"])
    let _: Results<Fellow?> = map.where { $0.age > 3 }
    let _: Results<Fellow?> = map.filter("age > 3")
    let _: Int? = map.min(ofProperty: "age")
    let _: Int? = map.min(of: \.age)
    let _: Int? = map.max(of: \.age)
    let _: Int = map.sum(of: \.age)
    let _: Int? = map.average(of: \.age)
    let _: Results<Fellow?> = map.sorted(by: \.age, ascending: false)
}

@MainActor func callsThatObserveMaps(_ person: Fellow, _ map: Map<String, Fellow?>) {
    _ = map.observe { (change: RealmMapChange<Map<String, Fellow?>>) in
        switch change {
        case .initial(let m): _ = m
        case .update(let m, let deletions, let insertions, let modifications):
            let _: [String] = deletions + insertions + modifications
            _ = m
        case .error(let e): _ = e
        }
    }
    _ = map.observe(on: .main) { _ in }
    _ = map.observe(keyPaths: ["name"]) { _ in }
    _ = map.observe(keyPaths: ["name"], on: .main) { _ in }
    _ = map.observe(keyPaths: nil, on: nil) { _ in }
    let _: Map<String, Fellow?> = map.freeze()
    let _: Map<String, Fellow?>? = map.thaw()
    let _: Bool = map.isFrozen
    let _: Any? = map.value(forKey: "x")
    let _: Any? = map.value(forKeyPath: "x.name")
    map.setValue(person, forKey: "x")
    let _: Bool = map.contains { key, value in key == "a" && value != nil }
    let _: Bool = map.contains(where: { $0 == "a" && $1 != nil })
    let _: String = map.description
    let _: Bool = map == map
    let _: Set<Map<String, Int>> = []
}

@MainActor func callsOfAKeyedCollection<M: RealmKeyedCollection>(_ map: M) where M.Key == String, M.Value == Fellow? {
    var map = map
    let _: Realm? = map.realm
    let _: Bool = map.isInvalidated
    let _: Int = map.count
    let _: String = map.description
    map.updateValue(nil, forKey: "x")
    map.removeObject(for: "x")
    map["x"] = Fellow()
    let _: Fellow?? = map["x"]
    _ = map.value(forKey: "x")
    _ = map.value(forKeyPath: "x")
    map.setValue(nil, forKey: "x")
    let _: Results<Fellow?> = map.filter(NSPredicate(format: "age > 3"))
    let _: Results<Fellow?> = map.filter("age > 3")
    let _: Bool = map.contains(where: { _, _ in true })
    let _: Results<Fellow?> = map.sorted(ascending: true)
    let _: Results<Fellow?> = map.sorted(byKeyPath: "age", ascending: true)
    let _: Results<Fellow?> = map.sorted(by: [SluiceSDK.SortDescriptor(keyPath: "age")])
    let _: [String] = map.keys
    let _: [Fellow?] = map.values
    let _: Int? = map.min(ofProperty: "age")
    let _: Int? = map.max(ofProperty: "age")
    let _: Int = map.sum(ofProperty: "age")
    let _: Double? = map.average(ofProperty: "age")
    _ = map.observe(on: nil) { (change: RealmMapChange<M>) in _ = change }
    _ = map.observe(keyPaths: ["age"], on: nil) { (change: RealmMapChange<M>) in _ = change }
    let _: Bool = map.isFrozen
    let _: M = map.freeze()
    let _: M? = map.thaw()
    map.removeAll()
}

@MainActor func callsOfSections(_ results: Results<Fellow>) {
    let all: SectionedResults<String, Fellow> = results.sectioned(by: \.name)
    let section: ResultsSection<String, Fellow> = all[0]
    let _: Fellow = section[0]
    let _: Fellow = all[IndexPath(indexes: [0, 0])]
    let _: String = section.key
    let _: String = section.id
    let _: [String] = all.allKeys
    let _: Realm? = all.realm
    let _: Bool = all.isInvalidated || all.isFrozen || section.isFrozen || section.isInvalidated
    let _: Realm? = section.realm
    let _: Int = all.count + section.count
    let _: String = all.description + section.description
    let _: SectionedResults<String, Fellow> = all.freeze()
    let _: SectionedResults<String, Fellow>? = all.thaw()
    let _: ResultsSection<String, Fellow> = section.freeze()
    let _: ResultsSection<String, Fellow>? = section.thaw()
    for s in all { for p in s { _ = (s.key, p.name) } }
}

@MainActor func callsThatObserveSections(_ all: SectionedResults<String, Fellow>, _ section: ResultsSection<String, Fellow>) {
    _ = all.observe { (change: SectionedResultsChange<SectionedResults<String, Fellow>>) in
        switch change {
        case .initial(let c): _ = c
        case .update(let c, let deletions, let insertions, let modifications, let sectionsToInsert, let sectionsToDelete):
            let _: [IndexPath] = deletions + insertions + modifications
            let _: IndexSet = sectionsToInsert.union(sectionsToDelete)
            _ = c
        }
    }
    _ = all.observe(on: .main) { _ in }
    _ = all.observe(keyPaths: ["name"]) { _ in }
    _ = all.observe(keyPaths: ["name"], on: .main) { _ in }
    _ = all.observe(keyPaths: [\Fellow.name]) { _ in }
    _ = all.observe(keyPaths: [\Fellow.name], on: .main) { _ in }
    _ = section.observe { (change: SectionedResultsChange<ResultsSection<String, Fellow>>) in _ = change }
    _ = section.observe(keyPaths: ["name"], on: .main) { _ in }
    _ = section.observe(keyPaths: [\Fellow.name], on: .main) { _ in }
    _ = all.sorted { $0.key < $1.key }
    _ = all.first?.key
}
