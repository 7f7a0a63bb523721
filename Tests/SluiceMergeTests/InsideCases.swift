package import SluiceCore
import SluiceMerge

/// An element of the list that everybody has seen: `a`, `b`, `c`, or of the list of embedded objects.
func listed(_ index: Int) -> ElementRef { .listed(index, ValueHash(.string(["a", "b", "c"][index]))) }
func listed(child index: Int) -> EditStep { .element(.listed(index, ValueHash(.dictionary(["n": .int(Int64(index))])))) }
/// One's own insertion.
func own(_ tag: UInt64, _ text: String) -> ElementRef { .own(tag, index: 0, ValueHash(.string(text))) }

extension Edit {
    static func insert(_ text: String, after: ElementRef?, tag: UInt64 = 1) -> Edit {
        Edit("list", .insert(.string(text), after: after, tag: tag))
    }
    static func remove(_ element: ElementRef) -> Edit { Edit("list", [.element(element)], .remove) }
    static func replace(_ element: ElementRef, _ text: String) -> Edit { Edit("list", [.element(element)], .set(.string(text))) }
    static func move(_ element: ElementRef, after: ElementRef?, tag: UInt64 = 1) -> Edit {
        Edit("list", [.element(element)], .move(after: after, tag: tag))
    }
    static func field(_ name: String, _ value: Value) -> Edit { Edit("child", [.key(name)], .set(value)) }
    static func key(_ key: String, _ value: Value) -> Edit { Edit("map", [.key(key)], .set(value)) }
    static let clearList = Edit("list", .clear(.list))
}

extension ConflictCase {
    /// What everybody has seen.
    static let full = Step.client(
        9, at: 1,
        .create([
            "name": "first", "list": ["a", "b", "c"], "set": .list([1, 2, 3]), "map": .dictionary(["k": 1, "l": 2]),
            "children": .list([.dictionary(["n": 0]), .dictionary(["n": 1])]),
        ]))
    static let left: [String: Value] = [
        "name": "first", "list": ["a", "b", "c"], "set": .list([1, 2, 3]), "map": .dictionary(["k": 1, "l": 2]),
        "children": .list([.dictionary(["n": 0]), .dictionary(["n": 1])]),
    ]

    /// Two writers who know the same and nothing of each other.
    static func both(
        _ rule: String, _ situation: String, _ first: ObjectChange, _ second: ObjectChange, _ outcome: [String: Value?]
    ) -> ConflictCase {
        side(rule, situation, [.client(1, at: 10, seen: 1, first), .client(2, at: 20, seen: 1, second)], outcome)
    }

    static func side(_ rule: String, _ situation: String, _ steps: [Step], _ outcome: [String: Value?]) -> ConflictCase {
        var expected = left
        for (name, value) in outcome { expected[name] = value }
        return ConflictCase(rule: rule, situation: situation, steps: steps, outcome: expected, start: full, type: folder)
    }

    static let inside: [ConflictCase] = lists + listMoves + clears + members + embedded + wholes + counters

    static let lists: [ConflictCase] = [
        both(
            "CR-11", "insertions at one index are both kept, the earlier first",
            .edit(.insert("x", after: listed(1))), .edit(.insert("y", after: listed(1))), ["list": ["a", "b", "x", "y", "c"]]),
        both(
            "CR-11", "so are appendings", .edit(.insert("x", after: listed(2))), .edit(.insert("y", after: listed(2))),
            ["list": ["a", "b", "c", "x", "y"]]),
        both(
            "CR-11", "and insertions at the start", .edit(.insert("x", after: nil)), .edit(.insert("y", after: nil)),
            ["list": ["x", "y", "a", "b", "c"]]),
        both(
            "CR-11", "what one side inserts in a row stays together",
            .edit(.insert("x", after: listed(2), tag: 1), .insert("z", after: own(1, "x"), tag: 2)),
            .edit(.insert("y", after: listed(2), tag: 1), .insert("w", after: own(1, "y"), tag: 2)),
            ["list": ["a", "b", "c", "x", "z", "y", "w"]]),
        both(
            "CR-11", "what one side inserts before its own comes before",
            .edit(.insert("x", after: nil, tag: 1), .insert("z", after: nil, tag: 2)), .edit(.insert("y", after: nil)),
            ["list": ["z", "x", "y", "a", "b", "c"]]),
        both(
            "CR-11", "an insertion and a move to one place likewise", .edit(.move(listed(2), after: listed(0))),
            .edit(.insert("y", after: listed(0))), ["list": ["a", "c", "y", "b"]]),
        both(
            "CR-11", "an insertion behind an element that another removes keeps its place", .edit(.remove(listed(1))),
            .edit(.insert("x", after: listed(1))), ["list": ["a", "x", "c"]]),
        both(
            "CR-12", "the set of an element is discarded when another removes it", .edit(.remove(listed(1))),
            .edit(.replace(listed(1), "B")), ["list": ["a", "c"]]),
        both(
            "CR-12", "a change inside of an element is discarded when another removes it",
            .edit(Edit("children", [listed(child: 1)], .remove)), .edit(Edit("children", [listed(child: 1), .key("n")], .set(9))),
            ["children": .list([.dictionary(["n": 0])])]),
        both(
            "CR-13", "an element that both remove is removed once", .edit(.remove(listed(0))), .edit(.remove(listed(0))),
            ["list": ["b", "c"]]),
        both(
            "CR-13", "neighbours that two remove are both gone", .edit(.remove(listed(0))), .edit(.remove(listed(1))), ["list": ["c"]]),
        both(
            "CR-5", "of two sets of an element the later wins", .edit(.replace(listed(0), "late")), .edit(.replace(listed(0), "later")),
            ["list": ["later", "b", "c"]]),
    ]

    static let listMoves: [ConflictCase] = [
        both(
            "CR-14", "of two moves of an element the later counts", .edit(.move(listed(0), after: listed(1))),
            .edit(.move(listed(0), after: listed(2))), ["list": ["b", "c", "a"]]),
        both(
            "CR-14", "moves of different elements to one place come in the order of time", .edit(.move(listed(0), after: listed(2))),
            .edit(.move(listed(1), after: listed(2))), ["list": ["c", "a", "b"]]),
        both(
            "CR-15", "an element that one moves and another removes is gone", .edit(.remove(listed(0))),
            .edit(.move(listed(0), after: listed(2))), ["list": ["b", "c"]]),
        both(
            "CR-15", "whoever was first", .edit(.move(listed(0), after: listed(2))), .edit(.remove(listed(0))), ["list": ["b", "c"]]),
        both(
            "CR-5", "the set of an element follows its move", .edit(.move(listed(0), after: listed(2))),
            .edit(.replace(listed(0), "A")), ["list": ["b", "c", "A"]]),
        side(
            "CR-11", "a writer's next changeset finds its own elements and those that it moved",
            [
                .client(1, at: 10, seen: 1, .edit(.insert("x", after: listed(0), tag: 1), .move(listed(2), after: nil, tag: 2))),
                .client(1, at: 11, seen: 1, .edit(.replace(own(1, "x"), "X"), .insert("y", after: listed(2), tag: 3))),
                .client(2, at: 5, seen: 1, .edit(.insert("z", after: nil))),
            ], ["list": ["z", "c", "y", "a", "X", "b"]]),
    ]

    static let clears: [ConflictCase] = [
        both(
            "CR-16", "a clear discards what others do inside of a list, also later insertions", .edit(.clearList),
            .edit(.insert("x", after: listed(0))), ["list": nil]),
        both(
            "CR-16", "and of a set", .edit(Edit("set", .clear(.set))), .edit(Edit("set", .setInsert(9))), ["set": nil]),
        both(
            "CR-16", "and of a dictionary", .edit(Edit("map", .clear(.dictionary))), .edit(.key("m", 3)), ["map": nil]),
        side(
            "CR-16", "what the one who cleared does afterwards stands",
            [
                .client(1, at: 10, seen: 1, .edit(.clearList, .insert("x", after: nil))),
                .client(2, at: 20, seen: 1, .edit(.replace(listed(0), "A"))),
            ], ["list": ["x"]]),
        side(
            "CR-17", "of two clears the later is kept: what followed it on its side survives",
            [
                .client(1, at: 10, seen: 1, .edit(.clearList, .insert("x", after: nil))),
                .client(2, at: 20, seen: 1, .edit(.clearList, .insert("y", after: nil))),
            ], ["list": ["y"]]),
        both(
            "CR-18", "a clear of a mixed list and its becoming a list both pass", .edit(Edit("any", .become(.list))),
            .edit(Edit("any", .become(.list)), Edit("any", .clear(.list))), [:]),
        both(
            "CR-18", "of a clear and another value the later wins", .edit(.clearList), .set(["list": ["new"]]), ["list": ["new"]]),
        both(
            "CR-18", "of another value and a clear the later wins", .set(["list": ["new"]]), .edit(.clearList), ["list": nil]),
    ]

    static let members: [ConflictCase] = [
        both(
            "CR-19", "the later of insertion and removal of a member wins", .edit(Edit("set", .setErase(1))),
            .edit(Edit("set", .setInsert(1))), ["set": .list([1, 2, 3])]),
        both(
            "CR-19", "or of removal and insertion", .edit(Edit("set", .setInsert(1))), .edit(Edit("set", .setErase(1))),
            ["set": .list([2, 3])]),
        both(
            "CR-19", "different members do not meet", .edit(Edit("set", .setInsert(4))), .edit(Edit("set", .setErase(2))),
            ["set": .list([1, 3, 4])]),
        both(
            "CR-19", "a member that two insert is there once", .edit(Edit("set", .setInsert(4))), .edit(Edit("set", .setInsert(4))),
            ["set": .list([1, 2, 3, 4])]),
        both(
            "CR-20", "the removal of a key is an update: the later wins", .edit(.key("k", 5)), .edit(Edit("map", [.key("k")], .remove)),
            ["map": .dictionary(["l": 2])]),
        both(
            "CR-20", "also when it is the set", .edit(Edit("map", [.key("k")], .remove)), .edit(.key("k", 5)),
            ["map": .dictionary(["k": 5, "l": 2])]),
        both(
            "CR-20", "different keys do not meet", .edit(.key("k", 5)), .edit(Edit("map", [.key("l")], .remove), .key("n", 6)),
            ["map": .dictionary(["k": 5, "n": 6])]),
    ]

    static let embedded: [ConflictCase] = [
        both(
            "CR-21", "an embedded object that both make in one place is one, field by field",
            .set(["child": .dictionary(["x": 1, "y": 1])]),
            .set(["child": .dictionary(["y": 2, "z": 2])]), ["child": .dictionary(["x": 1, "y": 2, "z": 2])]),
        both(
            "CR-21", "making it does not undo what another does inside",
            .edit(Edit("child", .become(.object)), .field("x", 1)), .edit(Edit("child", .become(.object)), .field("z", 2)),
            ["child": .dictionary(["x": 1, "z": 2])]),
        both(
            "CR-22", "null in the place beats an embedded object, whatever the time", .set(["child": .null]),
            .edit(Edit("child", .become(.object)), .field("x", 1)), [:]),
        both(
            "CR-22", "also a later null", .edit(Edit("child", .become(.object)), .field("x", 1)), .set(["child": .null]), [:]),
        side(
            "CR-22", "who knows of the null can make an object again",
            [
                .client(1, at: 10, seen: 1, .set(["child": .null])), .client(1, at: 11, seen: 1, .set(["child": .dictionary(["x": 1])])),
                .client(2, at: 5, seen: 1, .set(["child": .null])),
            ], ["child": .dictionary(["x": 1])]),
        both(
            "CR-22", "an embedded object at a key, against the removal of the key",
            .edit(Edit("map", [.key("k")], .remove)), .edit(Edit("map", [.key("k")], .set(.dictionary(["x": 1])))),
            ["map": .dictionary(["k": .dictionary(["x": 1]), "l": 2])]),
    ]

    static let wholes: [ConflictCase] = [
        both(
            "CR-23", "a value that is set beats any change beneath it, also a later one", .set(["list": ["new"]]),
            .edit(.insert("x", after: listed(0))), ["list": ["new"]]),
        both(
            "CR-23", "also an earlier one", .edit(.insert("x", after: listed(0))), .set(["list": ["new"]]), ["list": ["new"]]),
        both(
            "CR-23", "an element that is set beats changes beneath it",
            .edit(Edit("children", [listed(child: 0)], .set(.dictionary(["n": 7])))),
            .edit(Edit("children", [listed(child: 0), .key("n")], .set(9))),
            ["children": .list([.dictionary(["n": 7]), .dictionary(["n": 1])])]),
        both(
            "CR-23", "a key that is set beats changes beneath it", .edit(.key("k", .dictionary(["deep": 1]))),
            .edit(Edit("map", [.key("k"), .key("deep")], .set(9))), ["map": .dictionary(["k": .dictionary(["deep": 1]), "l": 2])]),
        both(
            "CR-24", "a mixed that two make a list is one list with the elements of both",
            .edit(Edit("any", .become(.list)), Edit("any", .insert(1, after: nil, tag: 1))),
            .edit(Edit("any", .become(.list)), Edit("any", .insert(2, after: nil, tag: 1))), ["any": .list([1, 2])]),
        both(
            "CR-24", "a mixed that two make a dictionary likewise",
            .edit(Edit("any", .become(.dictionary)), Edit("any", [.key("p")], .set(1))),
            .edit(Edit("any", .become(.dictionary)), Edit("any", [.key("q")], .set(2))), ["any": .dictionary(["p": 1, "q": 2])]),
        both(
            "CR-24", "of one list and one dictionary the later wins",
            .edit(Edit("any", .become(.list)), Edit("any", .insert(1, after: nil, tag: 1))),
            .edit(Edit("any", .become(.dictionary)), Edit("any", [.key("q")], .set(2))), ["any": .dictionary(["q": 2])]),
        both(
            "CR-24", "whichever it is",
            .edit(Edit("any", .become(.dictionary)), Edit("any", [.key("q")], .set(2))),
            .edit(Edit("any", .become(.list)), Edit("any", .insert(1, after: nil, tag: 1))), ["any": .list([1])]),
        both(
            "CR-25", "a list of links keeps keys as it keeps any values", .edit(Edit("friends", .insert(7, after: nil, tag: 1))),
            .edit(Edit("friends", .insert(8, after: nil, tag: 1))), ["friends": .list([7, 8])]),
    ]

    static let counters: [ConflictCase] = [
        both(
            "CR-8", "additions at a key both count", .edit(Edit("map", [.key("k")], .add(3))), .edit(Edit("map", [.key("k")], .add(4))),
            ["map": .dictionary(["k": 8, "l": 2])]),
        both(
            "CR-9", "an addition at a key counts on top of an earlier set", .edit(.key("k", 50)), .edit(Edit("map", [.key("k")], .add(4))),
            ["map": .dictionary(["k": 54, "l": 2])]),
        both(
            "CR-9", "an addition at a key is dropped for a later set", .edit(Edit("map", [.key("k")], .add(4))), .edit(.key("k", 50)),
            ["map": .dictionary(["k": 50, "l": 2])]),
        both(
            "CR-10", "an addition to text at a key has no effect", .edit(.key("k", "text")), .edit(Edit("map", [.key("k")], .add(4))),
            ["map": .dictionary(["k": "text", "l": 2])]),
        side(
            "CR-32", "an SQL statement that writes a list beats what was done to it before",
            [.client(1, at: 10, seen: 1, .edit(.insert("x", after: listed(0)))), .sql(at: 500, ["list": ["s", "t"]])],
            ["list": ["s", "t"]]),
        side(
            "CR-32", "and what is done to it later finds its elements by their values",
            [.client(1, at: 10, seen: 1, .edit(.insert("x", after: listed(0)))), .sql(at: 500, ["list": ["c", "s", "a"]])],
            ["list": ["c", "s", "a"]]),
    ]
}

extension Value: ExpressibleByArrayLiteral {
    package init(arrayLiteral elements: Value...) { self = .list(elements) }
}
