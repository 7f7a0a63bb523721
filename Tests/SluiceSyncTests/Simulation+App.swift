import SluiceCore
import SluiceReplica
import SluiceSync

/// What the apps do.
extension Simulation {
    mutating func appWrites(_ index: Int) {
        // Under a set that was refused the app goes on in the one before.
        let sets = clients[index].file.sets.filter { set in !set.subscriptions.contains { $0.query == "bad" } }
        let stores = sets.last?.subscriptions.map(\.query) ?? []
        guard !stores.isEmpty else { return }
        let item = Item(store: stores[below(stores.count)], value: below(12) == 0 ? "forbidden" : "v\(below(1_000_000))")
        let isOwn = below(2) == 0
        var key = Int64(below(40))
        if isOwn {
            clients[index].nextKey += 1
            key = clients[index].nextKey
            clients[index].own[key] = item
        }
        let (written, time) = (!isOwn && below(10) == 0 ? nil : item, wall(index))
        clients[index].file.write(key, written, at: time)
        clients[index].inbox.append(.localChange)
    }

    /// Whether the app may write what is in the store that all share: under the set that it has and the one it wants.
    private func sees(_ index: Int, _ key: Int64) -> Bool {
        let sets = clients[index].file.sets.filter { set in !set.subscriptions.contains { $0.query == "bad" } }
        return sets.last?.subscriptions.contains { $0.query == "north" } == true && clients[index].file.shown(key) != nil
    }

    mutating func appAdds(_ index: Int) {
        guard sees(index, Simulation.counter) else { return }
        let amount = Int64(below(100)) - 30
        added += amount
        let time = wall(index)
        clients[index].file.add(amount, to: Simulation.counter, at: time)
        clients[index].inbox.append(.localChange)
    }

    /// One transaction of the app's: whoever sees one half of it sees the other.
    mutating func appWritesTwins(_ index: Int) {
        guard Simulation.twins.allSatisfy({ sees(index, $0) }) else { return }
        let (value, time) = (Value.string("twin \(below(1_000_000))"), wall(index))
        let changes = Simulation.twins.map {
            ObjectChange(object: ObjectKey(type: "Item", key: .int($0)), kind: .set, values: ["value": value])
        }
        clients[index].file.write(changes, at: time)
        clients[index].inbox.append(.localChange)
    }

    /// Sets a value that the others set as well.
    mutating func appContends(_ index: Int) {
        let key = Simulation.contested[below(2)]
        guard sees(index, key) else { return }
        let (value, time) = (Value.string("contested \(below(1_000_000))"), wall(index))
        let change = ObjectChange(object: ObjectKey(type: "Item", key: .int(key)), kind: .set, values: ["value": value])
        clients[index].file.write([change], at: time)
        clients[index].inbox.append(.localChange)
    }

    mutating func appEdits(_ index: Int) {
        guard sees(index, Simulation.list) else { return }
        let text = below(3) == 0 ? nil : "\(index)-\(clients[index].inserted.count)"
        let (pick, time) = (below(1_000), wall(index))
        let removed = clients[index].file.editTags(Simulation.list, insert: text, pick: pick, at: time)
        if let text { clients[index].inserted.insert(text) }
        if let removed { clients[index].removed.insert(removed) }
        clients[index].inbox.append(.localChange)
    }

    mutating func appSubscribes(_ index: Int) {
        var stores = Simulation.stores.filter { _ in below(2) == 0 }
        if below(8) == 0 { stores.append("bad") }
        clients[index].file.subscribe(stores)
        clients[index].inbox.append(.localChange)
    }

    mutating func appIngests(_ index: Int) {
        clients[index].file.ingest(nextReading)
        nextReading += 1
        clients[index].inbox.append(.localChange)
    }

    mutating func appWaits(_ index: Int) {
        clients[index].waits += 1
        feed(index, .wait(clients[index].waits, below(2) == 0 ? .download : .upload, deadline: nil))
    }

    func wall(_ index: Int) -> Int64 { gateway.wall + clients[index].skew }
}
