import Foundation
import SluiceSDK

// The calls that RealmSwift has for projections, each overload once. That they compile is the contract.

@MainActor func callsOfViews(_ person: Fellow) async {
    let view = FellowView(projecting: person)
    let _: Fellow = view.rootObject
    let _: String = view.name
    view.name = "x"
    let _: String? = view.street
    let _: ProjectedCollection<String> = view.friendNames
    let _: Realm? = view.realm
    let _: Bool = view.isInvalidated || view.isFrozen
    let _: FellowView = view.freeze()
    let _: FellowView? = view.thaw()
    let _: String = view.description
    let _: Set<FellowView> = [view]
    _ = view.observe { (change: ObjectChange<FellowView>) in _ = change }
    _ = view.observe(keyPaths: ["name"], on: .main) { (change: ObjectChange<FellowView>) in _ = change }
    _ = view.observe(keyPaths: [\FellowView.name]) { (change: ObjectChange<FellowView>) in _ = change }
    _ = view.observe(keyPaths: [\FellowView.name], on: .main) { (change: ObjectChange<FellowView>) in _ = change }
    _ = await view.observe(on: MainActor.shared) { (actor: isolated MainActor, change: ObjectChange<FellowView>) in _ = change }
    _ = await view.observe(keyPaths: ["name"], on: MainActor.shared) { (actor: isolated MainActor, change: ObjectChange<FellowView>) in
        _ = change
    }
    _ = await view.observe(keyPaths: [\FellowView.name], on: MainActor.shared) {
        (actor: isolated MainActor, change: ObjectChange<FellowView>) in _ = change
    }
}

@MainActor func callsOfViewedCollections(_ person: Fellow, _ names: ProjectedCollection<String>) {
    let _: Int = names.count
    let _: String = names[0]
    names[0] = "y"
    let _: String? = names.first
    let _: String? = names.last
    for n in names { let _: String = n }
    _ = names.observe { (change: RealmCollectionChange<ProjectedCollection<String>>) in _ = change }
    _ = names.observe(on: .main) { _ in }
    _ = names.observe(keyPaths: ["x"], on: .main) { _ in }
    let _: Int? = names.index(of: "x")
    let _: Int? = names.index(matching: NSPredicate(format: "name == %@", "x"))
    let _: Bool = names.isInvalidated || names.isFrozen
    let _: Realm? = names.realm
    _ = names.freeze()
    _ = names.thaw()
    let views: Results<FellowView> = person.realm!.objects(FellowView.self)
    let _: FellowView? = views.first
    _ = views.filter("name == 'x'").sorted(byKeyPath: "name")
    _ = views.sorted(by: \.name)
    _ = views.observe { (change: RealmCollectionChange<Results<FellowView>>) in _ = change }
    _ = views.observe(keyPaths: [\FellowView.name]) { _ in }
    _ = views.sectioned(by: \.name)
}
