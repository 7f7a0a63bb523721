import Foundation
import SluiceSDK

// The calls that RealmSwift has for collections, each overload once. That they compile is the contract.

@MainActor func callsOfACollection<C: RealmCollection>(_ c: C) where C.Element == Fellow {
    let _: Realm? = c.realm
    let _: Bool = c.isInvalidated
    let _: Int = c.count
    let _: String = c.description
    let _: Fellow? = c.first
    let _: Fellow? = c.last
    let _: [Fellow] = c.objects(at: IndexSet([0]))
    let _: Int? = c.index(of: Fellow())
    let _: Int? = c.index(matching: NSPredicate(format: "age > 3"))
    let _: Int? = c.index(matching: "age > %@", 3)
    let _: Int? = c.index(matching: { $0.age > 3 })
    let _: Results<Fellow> = c.filter("age > 3 AND name == %@", "x")
    let _: Results<Fellow> = c.filter(NSPredicate(format: "age > 3"))
    let _: Results<Fellow> = c.where { $0.age > 3 }
    let _: Results<Fellow> = c.sorted(byKeyPath: "age", ascending: true)
    let _: Results<Fellow> = c.sorted(byKeyPath: "age")
    let _: Results<Fellow> = c.sorted(by: [SluiceSDK.SortDescriptor(keyPath: "age")])
    let _: Results<Fellow> = c.sorted(by: \.age, ascending: false)
    let _: Results<Fellow> = c.sorted(by: \.height)
    let _: Results<Fellow> = c.distinct(by: ["age"])
    let _: Results<Fellow> = c.distinct(by: [\Fellow.age, \Fellow.name])
    let _: Int? = c.min(ofProperty: "age")
    let _: Int? = c.max(ofProperty: "age")
    let _: Int = c.sum(ofProperty: "age")
    let _: Double? = c.average(ofProperty: "age")
    let _: Int? = c.min(of: \.age)
    let _: Int? = c.max(of: \.age)
    let _: Int = c.sum(of: \.age)
    let _: Double? = c.average(of: \.age)
    let _: Date? = c.min(of: \.born)
    let _: Any? = c.value(forKey: "age")
    let _: Any? = c.value(forKeyPath: "@count")
    c.setValue(3, forKey: "age")
}

@MainActor func callsThatObserve<C: RealmCollection>(_ c: C) where C.Element == Fellow {
    let token: NotificationToken = c.observe { (change: RealmCollectionChange<C>) in
        switch change {
        case .initial(let all): _ = all.count
        case .update(let all, let deletions, let insertions, let modifications):
            let _: [Int] = deletions + insertions + modifications
            _ = all
        case .error(let error): let _: any Swift.Error = error
        }
    }
    token.invalidate()
    _ = c.observe(on: .main) { _ in }
    _ = c.observe(on: nil) { _ in }
    _ = c.observe(keyPaths: ["age"]) { _ in }
    _ = c.observe(keyPaths: ["age"], on: .main) { _ in }
    _ = c.observe(keyPaths: nil, on: nil) { _ in }
    _ = c.observe(keyPaths: [\Fellow.age, \Fellow.name]) { _ in }
    _ = c.observe(keyPaths: [\Fellow.age], on: .main) { _ in }
    let _: Bool = c.isFrozen
    let _: C = c.freeze()
    let _: C? = c.thaw()
    let _: SectionedResults<String, Fellow> = c.sectioned(by: \.name, ascending: true)
    let _: SectionedResults<String, Fellow> = c.sectioned(by: \.name)
    let _: SectionedResults<String, Fellow> = c.sectioned(by: \.name, sortDescriptors: [.init(keyPath: "name")])
    let _: SectionedResults<String, Fellow> = c.sectioned(
        by: { String($0.name.prefix(1)) }, sortDescriptors: [.init(keyPath: \Fellow.name)])
    let _: SectionedResults<String, Fellow> = c.sectioned(sortDescriptors: [.init(keyPath: "name")]) { $0.name }
}

@MainActor func callsThatObserveOnActors(
    _ results: Results<Fellow>, _ list: List<Fellow>, _ map: Map<String, Fellow?>, _ set: MutableSet<Fellow>,
    _ links: LinkingObjects<Fellow>
) async {
    let a: NotificationToken = await results.observe(on: MainActor.shared) {
        (actor: isolated MainActor, change: RealmCollectionChange<Results<Fellow>>) in _ = change
    }
    _ = a
    _ = await list.observe(on: MainActor.shared) { _, _ in }
    _ = await list.observe(keyPaths: ["name"], on: Elsewhere.shared) { actor, change in _ = (actor, change) }
    _ = await set.observe(keyPaths: [\Fellow.name], on: Elsewhere.shared) { actor, change in _ = (actor, change) }
    _ = await links.observe(on: Elsewhere.shared) { actor, change in _ = (actor, change) }
    _ = await map.observe(on: MainActor.shared) { (actor: isolated MainActor, change: RealmMapChange<Map<String, Fellow?>>) in _ = change }
    _ = await map.observe(keyPaths: ["name"], on: MainActor.shared) { _, _ in }
    _ = await AnyRealmCollection(list).observe(on: MainActor.shared) { _, _ in }
    _ = await results.sectioned(by: \.name).observe(on: MainActor.shared) { _, _ in }
    _ = await results.sectioned(by: \.name).observe(keyPaths: ["name"], on: MainActor.shared) { _, _ in }
    _ = await results.sectioned(by: \.name).observe(keyPaths: [\Fellow.name], on: Elsewhere.shared) { _, _ in }
    _ = await results.sectioned(by: \.name)[0].observe(on: MainActor.shared) { _, _ in }
}

@MainActor func callsOfValues(_ person: Fellow) {
    callsOfACollection(person.friends)
    callsOfACollection(person.friendSet)
    callsOfACollection(person.befriended)
    callsOfACollection(person.realm!.objects(Fellow.self))
    let any = AnyRealmCollection(person.friends)
    callsOfACollection(any)
    let _: Fellow = any[0]
    for p in any { _ = p.name }
    let nums = person.nums
    let _: Int? = nums.min()
    let _: Int? = nums.max()
    let _: Int = nums.sum()
    let _: Double? = nums.average()
    let _: Results<Int> = nums.sorted(ascending: false)
    let _: Results<Int> = nums.distinct()
    let _: Results<Int> = nums.filter("self > 3")
    let _: Results<Int> = nums.where { $0 > 3 }
    let _: Int?? = person.optNums.min()
    let _: Int? = person.optNums.sum()
    let _: Date? = person.dates.max()
    let _: SectionedResults<String, Int> = nums.sectioned(by: { $0 > 3 ? "a" : "b" }, ascending: true)
    let _: SectionedResults<String, String> = person.names.sectioned(by: { String($0.prefix(1)) })
    let _: SectionedResults<Int, Int> = nums.sectioned(by: { $0 })
    let _: [Int] = Array(nums)
}

@MainActor func callsOfLists(_ person: Fellow, _ list: List<Fellow>) {
    callsThatObserve(list)
    let fresh = List<Fellow>()
    let literal: List<Int> = [1, 2]
    _ = (fresh, literal)
    list.append(person)
    list.append(objectsIn: [person])
    list.append(objectsIn: list)
    list.append(objectsIn: person.realm!.objects(Fellow.self))
    list.insert(person, at: 0)
    list.insert(contentsOf: [person], at: 0)
    list.remove(at: 0)
    list.removeAll()
    list.removeFirst()
    list.removeFirst(2)
    list.removeLast()
    list.removeLast(2)
    list.removeSubrange(0..<1)
    list.removeSubrange(0...1)
    list.remove(atOffsets: IndexSet([0]))
    list.move(fromOffsets: IndexSet([0]), toOffset: 1)
    list.move(from: 0, to: 1)
    list.swapAt(0, 1)
    list.replace(index: 0, object: person)
    list.replaceSubrange(0..<1, with: [person])
    list[0] = person
}

@MainActor func callsThatReadLists(_ person: Fellow, _ list: List<Fellow>) {
    let _: Fellow = list[0]
    let _: Slice<List<Fellow>> = list[0..<1]
    let _: List<Fellow>.Index = list.startIndex
    let _: Bool = list == person.friends
    let _: Set<List<Fellow>> = [list]
    for (index, p) in list.enumerated() { _ = (index, p.name) }
    let _: [String] = list.map { $0.name }
    let _: [Fellow] = list.filter { $0.age > 3 }
    let _: Bool = list.contains(person)
    let _: Bool = list.isEmpty
    let _: List<Int> = List<Int>([1, 2, 3])
    let _: List<Int> = List(repeating: 3, count: 2)
}

@MainActor func callsOfSets(_ person: Fellow, _ set: MutableSet<Fellow>) {
    let _ = MutableSet<Int>()
    set.insert(person)
    set.insert(objectsIn: [person])
    set.remove(person)
    set.removeAll()
    let _: Bool = set.contains(person)
    let _: Bool = set.isSubset(of: set)
    let _: Bool = set.intersects(set)
    set.formUnion(set)
    set.formIntersection(set)
    set.subtract(set)
    let _: Fellow = set[0]
    let _: Fellow? = set.first
    let _: Int = person.numSet.sum()
    let _: Results<Int> = person.numSet.sorted(ascending: true)
    for p in set { _ = p }
}

@MainActor func callsOfResults(_ person: Fellow, _ list: List<Fellow>) {
    let links = person.befriended
    let _: Fellow = links[0]
    let _ = LinkingObjects(fromType: Fellow.self, property: "friend")
    // Results
    let results = person.realm!.objects(Fellow.self)
    let _: Fellow = results[0]
    let _: RLMIterator<Fellow> = results.makeIterator()
    let _: Slice<Results<Fellow>> = results[0..<1]
    let _: Results<FellowView> = results.as(FellowView.self)
    _ = results.lazy.filter { $0.age > 3 }.first
    _ = results.map(\.name)
    _ = results.makeIterator()
    let _: [Fellow] = Array(results.reversed())
    _ = results.elementsEqual(list)
    let compact: [Int] = results.compactMap { $0.home?.zip }
    _ = compact
    let flat = Array(results.flatMap { $0.nums })
    _ = flat
    let lazyFiltered = results.filter { $0.age > 3 }
    for p in lazyFiltered { _ = p }
    let mapped = results.map { $0.name }
    let _: [String] = Array(mapped)
    let _: String = mapped.joined()
}
