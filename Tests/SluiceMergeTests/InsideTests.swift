import SluiceCore
import SluiceMerge
import Testing

@Suite struct InsideTests {
    private func world(_ steps: Step...) throws -> World { try World([ConflictCase.full] + steps, folder) }

    @Test func `a writer who has seen the others' list names its elements by their places in it`() throws {
        var world = try world(
            .client(1, at: 10, seen: 1, .edit(.remove(listed(0)))), .client(2, at: 20, seen: 1, .edit(.insert("x", after: listed(1)))))
        #expect(world.shown?["list"] == ["b", "x", "c"])
        // Seen after both: index 1 is x. Seen after the first only: index 1 is c.
        try world.take(.client(3, at: 30, seen: 3, .edit(.replace(.listed(1, ValueHash("x")), "X"))))
        try world.take(.client(4, at: 31, seen: 2, .edit(.replace(.listed(1, ValueHash("c")), "C"))))
        #expect(world.shown?["list"] == ["b", "X", "C"])
    }

    @Test func `an element whose list is not known any more is found by its value, nearest to where it was`() throws {
        var world = try world(.sql(at: 500, ["list": ["a", "n", "b", "a"]]))
        try world.take(.client(1, at: 600, seen: 1, .edit(.replace(.listed(2, ValueHash("a")), "A"))))
        #expect(world.shown?["list"] == ["a", "n", "b", "A"])
        try world.take(.client(1, at: 601, seen: 1, .edit(.remove(.listed(1, ValueHash("gone"))))))
        #expect(world.lastEffect == .unchanged(.superseded))
        try world.take(.client(1, at: 602, seen: 1, .edit(.insert("x", after: .listed(9, ValueHash("gone")), tag: 4))))
        #expect(world.shown?["list"] == ["a", "n", "b", "A", "x"])
    }

    @Test func `CR-26 a list of another size than the writer can have seen, and an index beyond it, are contradictions`() throws {
        let ok = Edit("list", [.element(.seen(2))], .remove, priorSize: 3)
        #expect(try world(.client(1, at: 10, seen: 1, .edit(ok))).shown?["list"] == ["a", "b"])
        let insertion = Edit("list", .insert("x", after: .seen(2), tag: 1), priorSize: 3)
        #expect(try world(.client(1, at: 10, seen: 1, .edit(insertion))).shown?["list"] == ["a", "b", "c", "x"])
        for bad in [
            Edit("list", [.element(.seen(0))], .remove, priorSize: 4), Edit("list", [.element(.seen(3))], .remove),
            Edit("list", .insert("x", after: nil, tag: 1), priorSize: 2),
        ] {
            let error = #expect(throws: SluiceError.self) { try world(.client(1, at: 10, seen: 1, .edit(bad))) }
            #expect(error?.code == .badChangeset)
            // Operators alone read how long the list is: its writer may not be allowed to see it.
            #expect(error?.value == "3 elements")
            #expect(error.map { ClientError($0).message.contains("3 elements") } == false)
        }
    }

    @Test func `an index of a client of Realm's protocol into a list that SQL has replaced meanwhile is a conflict`() throws {
        for bad in [
            Edit("list", [.element(.seen(0))], .remove, priorSize: 3), Edit("list", [.element(.seen(2))], .set("x")),
            Edit("list", .insert("x", after: .seen(2), tag: 1), priorSize: 3),
        ] {
            let steps: [Step] = [ConflictCase.full, .sql(at: 500, ["list": ["s", "t"]]), .client(1, at: 600, seen: 1, .edit(bad))]
            let world = try World(steps, folder, isNumbered: true)
            #expect(world.shown?["list"] == ["s", "t"] && world.lastEffect == .unchanged(.superseded), "\(bad)")
            // Of other clients it is a contradiction: they name elements by what they saw.
            #expect(throws: SluiceError.self, "\(bad)") { try World(steps, folder) }
        }
    }

    /// The property has no clock until the other client's change.
    @Test func `so is one into a list that SQL has replaced and another client has changed since`() throws {
        let steps: [Step] = [
            .sql(at: 1, ["list": ["a", "b", "c"]]), .sql(at: 500, ["list": ["s", "t"]]),
            .client(2, at: 600, seen: 2, .edit(Edit("list", .insert("x", after: nil, tag: 1), priorSize: 2))),
        ]
        for bad in [
            Edit("list", [.element(.seen(0))], .remove, priorSize: 3), Edit("list", [.element(.seen(2))], .set("y")),
            Edit("list", .insert("y", after: .seen(2), tag: 1), priorSize: 3),
        ] {
            let world = try World(steps + [.client(1, at: 700, seen: 1, .edit(bad))], folder, isNumbered: true)
            #expect(world.shown?["list"] == ["x", "s", "t"] && world.lastEffect == .unchanged(.superseded), "\(bad)")
            // Whoever has seen the other client's change knows the list.
            let knowing = steps + [.client(1, at: 700, seen: 3, .edit(Edit("list", [.element(.seen(0))], .remove, priorSize: 2)))]
            #expect(throws: SluiceError.self) { try World(knowing, folder, isNumbered: true) }
        }
    }

    @Test func `CR-26 an edit that treats a property as what it is not is a contradiction`() throws {
        for bad in [
            Edit("name", .insert("x", after: nil, tag: 1)), Edit("list", .setInsert("x")), Edit("set", .insert(1, after: nil, tag: 1)),
            Edit("map", [.element(.seen(0))], .set(1)), Edit("list", [.key("k")], .set("x")), Edit("child", [.element(.seen(0))], .set(1)),
            Edit("name", .add(1)), Edit("any", .setInsert(1)), Edit("map", .clear(.list)),
        ] {
            let error = #expect(throws: SluiceError.self) { try world(.client(1, at: 10, seen: 1, .edit(bad))) }
            #expect(error?.code == .badChangeset, "\(bad)")
        }
    }

    @Test func `indices of one's own view count one's own changes so far`() throws {
        let world = try world(
            .client(
                1, at: 10, seen: 1,
                .edit(
                    Edit("list", .insert("x", after: .seen(0), tag: 1), priorSize: 3),
                    Edit("list", [.element(.seen(3))], .remove, priorSize: 4),
                    Edit("list", [.element(.seen(2))], .move(after: nil, tag: 2), priorSize: 3))))
        #expect(world.shown?["list"] == ["b", "a", "x"])
    }

    @Test func `what is pruned is what everybody knows: the outcome for whoever comes later is the same`() throws {
        var kept = try world(
            .client(1, at: 10, seen: 1, .edit(.remove(listed(0)), .key("k", 5), Edit("set", .setErase(1)), .clearList)),
            .client(1, at: 11, seen: 2, .edit(.insert("x", after: nil, tag: 5))))
        var pruned = kept
        var state = try pruned.state(now: pruned.rowTime)
        state.clocks.prune(below: LSN(rawValue: pruned.steps + 1))
        #expect(state.clocks.encoded.count < (try #require(kept.clocks)).count)
        #expect(state.clocks.properties.values.allSatisfy { $0.contents == nil && $0.reset == nil })
        pruned.clocks = state.clocks.encoded
        let later = Step.client(
            2, at: 20, seen: Int(pruned.steps) + 1,
            .edit(
                .insert("y", after: .listed(0, ValueHash("x"))), .key("k", 6), Edit("set", .setInsert(1)),
                .remove(.listed(0, ValueHash("x")))))
        try kept.take(later)
        try pruned.take(later)
        #expect(kept.shown == pruned.shown && kept.shown?["list"] == ["y"])
    }

    @Test func `removed elements of a list under work are pruned one by one`() throws {
        var world = try world()
        for round in 0..<200 {
            let seen = Int(world.steps)
            let element = ElementRef.listed(0, ValueHash(round == 0 ? "a" : round == 1 ? "b" : round == 2 ? "c" : .string("\(round - 3)")))
            let end =
                round == 0 ? listed(2) : ElementRef.listed(2, ValueHash(round < 3 ? .string("\(round - 1)") : .string("\(round - 1)")))
            try world.take(
                .client(1, at: 10 + Int64(round), seen: seen, .edit(.insert("\(round)", after: end, tag: UInt64(round)), .remove(element))))
            var state = try world.state(now: world.rowTime)
            state.clocks.prune(below: LSN(rawValue: UInt64(max(seen - 3, 0))))
            world.clocks = state.clocks.encoded
        }
        #expect(world.shown?["list"] == ["197", "198", "199"])
        #expect(try #require(world.clocks).count < 700)
    }

    @Test func `a device shows its own edits on top of what the server sends, whatever came to the list`() throws {
        let pending = ObjectChange.edit(.insert("x", after: listed(1)), .replace(listed(2), "C"), .remove(listed(0)))
        func shown(_ list: Value) throws -> Value? { try Overlay.apply(server: ["list": list], pending: [pending], type: folder)?["list"] }
        #expect(try shown(["a", "b", "c"]) == ["b", "x", "C"])
        #expect(try shown(["n", "a", "b", "m", "c"]) == ["n", "b", "x", "m", "C"])
        #expect(try shown(["c", "b"]) == ["C", "b", "x"])
        #expect(try shown([]) == ["x"])
    }
}
