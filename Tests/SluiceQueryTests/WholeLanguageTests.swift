import SluiceCore
import SluiceQuery
import Testing

/// What queries of the whole language select in a small world, each worked out by hand.
struct WholeLanguageTests {
    @Test(arguments: [
        ("owner.name == 'Ann'", "1"), ("owner.boss.name == 'Bob'", "3"), ("owner.age > 20", "1"),
        // A null link, and one to an object that is not there, read null.
        ("owner.name == null", "2 3 4"), ("owner.boss.name == null", "1 2 4"), ("owner == null", "2"), ("owner != null", "1 3 4"),
        ("owner == obj('Person', 1)", "1"), ("owner == obj('class_Person', 1)", "1"), ("owner != obj('Person', 1)", "2 3 4"),
        ("owner == obj('Person', 77)", ""), ("owner IN {obj('Person', 1), obj('Person', 3)}", "1 3"),
        ("owner.@count == 1", "1 3 4"), ("owner.@count == 0", "2"), ("owner.boss.@count == 1", "3"),
        ("books.price == 4", "1 2"), ("ALL books.price < 5", "3 4"), ("NONE books.price == 4.0", "3 4"), ("ANY books.price == null", "2"),
        ("books.author.name == 'Bob'", "1 2"),
        // Through a list a null link yields nothing.
        ("books.author.name == null", ""), ("ALL books.author.name == 'Bob'", "2 3 4"),
        ("ANY books == obj('Book', 'c')", "2"), ("books == books", "1 2 4"), ("ALL books == ANY books", "1 2 3 4"),
        ("books == {obj('Book', 'a'), obj('Book', 'b')}", "1"), ("obj('Book', 'b') IN books", "1 2"), ("books.@count == 3", "2"),
        ("books.@size == 0", "3"),
        ("books[0].pages == 100", "1"), ("books[LAST].pages == 300", "2"), ("books[FIRST].price == null", "3 4"),
        ("books[5].pages == null", "1 2 3 4"),
        ("books.marks == 2", "1"), ("ALL books.marks > 2", "2 3 4"),
        ("books.marks.@count == 2", "1"), ("NONE books.marks.@count == 0", "1 3 4"),
        ("books.author.boss.@count == 2", "2"), ("books.author.@count == 2", "1 2"),
        // `[*]` behind a list of links changes nothing.
        ("books[*].price == 4", "1 2"), ("books[*].author.name == null", ""), ("books[*].pages == books[*].pages", "1 2"),
        ("books[*].pages == {}", "3 4"), ("books[*].marks == {}", "3 4"),
        ("place.city == 'Mainz'", "1"), ("place == null", "3 4"), ("place.city == null", "3 4"), ("place.keeper.name == 'Bob'", "1"),
        ("stops.city == 'Far'", "1"), ("stops[1].city == 'Far'", "1"), ("stops.@count == 2", "1"), ("place.@count == 1", "1 2"),
        ("place.@links.Shop.place.name == 'North'", "1"), ("place.keeper.@links.@count == 4", "1"),
        ("staff.name == 'Bob'", "1"), ("staff['hand'].age == 40", "1"), ("staff.@keys == 'boss'", "1 3"), ("staff.@values.age < 35", "1"),
        ("staff[*].name == 'Ann'", "1"), ("staff['boss'] == obj('Person', 1)", "1"), ("staff['boss'].name == null", "2 3 4"),
    ])
    func `paths go through links, collections and embedded objects`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text) == expected)
    }

    @Test(arguments: [
        ("@links.Shop.books.name == 'North'", "a b"), ("@links.Shop.books.@count == 3", "b"), ("@links.@count == 1", "a c"),
        ("ALL @links.Shop.books.name == 'South'", "c"), ("@links.class_Shop.books.owner.age == 30", "a b"),
        ("ANY @links.Shop.books == obj('Shop', 2)", "b c"), ("SUBQUERY(@links.Shop.books, $s, $s.name == 'South').@count == 2", "b"),
        ("@links.Shop.books.@max._id == 2", "b c"), ("@links.Shop.books.@links.@count == 0", "a b c"),
    ])
    func `backlinks count every link`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text, type: "Book") == expected)
    }

    @Test(arguments: [
        ("@links.Person.boss.name == 'Bob'", "1"), ("@links.Shop.mix.name == null", "1"), ("boss.@links.Shop.owner.name == 'North'", "2"),
        ("@links.@count == 0", ""), ("@links.@count == 5", "1"), ("@links.@count == 4", "2"), ("@links.Shop.staff.@count == 1", "1 2"),
    ])
    func `backlinks come from mixed and dictionaries too`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text, type: "Person") == expected)
    }

    @Test(arguments: [
        ("stock['a'] == 3", "1"), ("stock.a == 3", "1"), ("stock == 0", "1"), ("ALL stock >= 0", "1 2 3 4"), ("stock[*] > 2", "1"),
        ("stock.@keys == 'b'", "1"), ("ANY stock.@keys BEGINSWITH 'a'", "1"), ("stock.@values == 3", "1"), ("stock.@size == 2", "1"),
        ("stock.@count == 0", "2 3 4"), ("stock['zz'] == null", "1 2 3 4"), ("extra.k == 'v'", "1"), ("extra['l'][1] == 2", "1"),
        ("extra.l[*] == 2", "1"), ("extra[*] == 1", "1"), ("extra['l'].@type == 'array'", "1"), ("extra.@count == 3", "1"),
        ("mix[0] == 1", "1"), ("mix[1].deep[FIRST] == 'x'", "1"), ("mix[1]['deep'][0] == 'x'", "1"), ("mix.deep == 5", "2"),
        ("mix['deep'] > 4", "2"), ("mix[*] == 5", "2"), ("mix[LAST].deep[*] == 'x'", "1"), ("mix.@keys == 'list'", "2"),
        ("mix[SIZE] == 2", "1 2"), ("mix.@size == 2", "1 2"), ("mix.list[0] == null", "1 2 3 4"), ("mix == obj('Person', 1)", "3"),
        ("mix == nan", "4"), ("mix == owner", ""), ("staff['boss'] == mix", ""), ("mix == staff['boss']", ""),
        ("SUBQUERY(@links.Shop.mix, $s, TRUEPREDICATE).@count == 0", "1 2 3 4"), ("mix.nothing.at.once == null", "1 2 3 4"),
        ("mix == 'x'", ""), ("mix != 'x'", "1 2 3 4"),
        ("tags[0] == 'old'", "1"), ("tags == null", "1"), ("tags.length == 2", "1"), ("tags.LENGTH > 2", "1 3"), ("tags[*] == 'new'", "3"),
        ("tags[SIZE] == 3", "1"), ("name.@count == 5", "1 2"), ("name.@size == 0", "3"), ("tags[0].@size == 3", "1 3"),
        ("prices[1] == 4", "1"), ("prices[9] == null", "1 2 3 4"), ("more\\ prices == 4", "1"),
    ])
    func `dictionaries, lists and mixed values are reached by key and index`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text) == expected)
    }

    @Test(arguments: [
        ("books.@min.price == 4", "1 2"), ("books.@max.price == 5.5", "1"), ("books.@sum.pages == 700", "2"),
        ("books.@avg.pages == 150", "1"),
        // Nothing to add up is 0, nothing else is null.
        ("books.@sum.price == 0", "3 4"), ("books.@avg.price == null", "3 4"), ("books.@min.price == null", "3 4"),
        ("books.@max.out > T15:0", "1 2"), ("prices.@sum == 9.5", "1"), ("prices.@avg == 4.75", "1"), ("prices.@min == null", "2 3 4"),
        ("codes.@max == 8", "1"), ("codes.@sum == 0", "3 4"), ("stock.@max == 3", "1"), ("stock.@values.@sum == 3", "1"),
        ("books.marks.@max == 2", "1"), ("books.marks.@sum == 0", "2"), ("books.@sum.exact == 3.30", "1"), ("books.@avg.exact == 1.5", "2"),
        ("extra.@sum == 1", "1"), ("books.@min.weight < 0.2", "2"), ("books.@max.pages < books.@sum.pages", "1 2"),
    ])
    func `aggregates leave nulls out`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text) == expected)
    }

    @Test(arguments: [
        ("SUBQUERY(books, $b, $b.price == 4).@count == 2", "2"),
        ("SUBQUERY(books, $b, $b.pages > 100 AND $b.author != null).@count > 0", "1 2"),
        ("SUBQUERY(books, $b, pages == 100).@size == 1", "1"), ("SUBQUERY(stops, $s, $s.city == 'Far').@count == 1", "1"),
        ("SUBQUERY(books, $b, SUBQUERY($b.@links.Shop.books, $s, $s.name == 'North').@count == 1).@count == 2", "1 2"),
        ("SUBQUERY(books, $b, $b.author == obj('Person', 2)).@count == SUBQUERY(books, $c, TRUEPREDICATE).@count", "3 4"),
        ("SUBQUERY(books, $b, $b == obj('Book', 'b')).@count == 2", "2"),
        ("SUBQUERY(books.author.@links.Shop.owner, $s, $s.name == 'North').@count == 1", "1"),
    ])
    func `a subquery counts what satisfies its condition`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text) == expected)
    }

    @Test(arguments: [
        ("mix.@type == 'array'", "1"), ("mix.@type == 'LIST'", "1"), ("mix.@type == 'object'", "2"), ("mix.@type == 'collection'", "1 2"),
        ("mix.@type == 'objectlink'", "3"), ("mix.@type == 'numeric'", "4"), ("mix.@type == 'double'", "4"),
        ("mix.@type != 'numeric'", "1 2 3"),
        ("mix[0].@type == 'int'", "1"), ("mix[*].@type == 'Dictionary'", "1"), ("mix.@type IN {'list', 'link'}", "1 3"),
        ("mix[0].@type == 'null'", "2 3 4"), ("name.@type == 'string'", "1 2 4"), ("name.@type == null", "3"),
        ("owner.@type == 'link'", "1 3 4"), ("place.@type == 'objectlink'", "1 2"), ("extra.k.@type == name.@type", "1 3"),
        ("ALL extra.@type == 'string'", "2 3 4"), ("_id.@type == name.@type", ""),
    ])
    func `types of values have names`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text) == expected)
    }

    @Test(arguments: [
        ("_id + 1 == 3", "2"), ("_id * 2 - 1 == 5", "3"), ("(_id + 1) * 2 == 8", "3"), ("_id / 2 == 1", "2 3"), ("_id / 2.0 == 1.5", "3"),
        ("7 / 2 == _id", "3"), ("_id / 0 == 9223372036854775807", "1 2 3 4"), ("(0 - _id) / 0 == -9223372036854775808", "1 2 3 4"),
        ("(_id - _id) / 0 > 0", "1 2 3 4"), ("_id + 9223372036854775807 < 0", "1 2 3 4"), ("prices[0] / 0 == inf", "1"),
        ("prices[0] + 1 == null", "2 3 4"), ("owner.age + _id == 31", "1"), ("books.pages + _id == 101", "1"),
        ("ALL books.pages - 100 > 0", "2 3 4"),
        ("books[0].weight + 1 == 1.5", "1"), ("books[0].exact + 0.1 == 1.2", "1"), ("books[0].exact * 2 == 4.4", "2"),
        ("books[0].exact / 3 == 0.3666666666666666666666666666666667", "1"), ("stock.a * 2 == 6", "1"), ("extra.n + 1 == 2", "1"),
        ("1 + 1 == _id", "2"), ("_id - 1 == 0.0", "1"), ("null + 1 == owner.age", "2 3 4"), ("books[1].weight * 0.5 == 0.75", "1 2"),
    ])
    func `arithmetic is done in the wider type`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text) == expected)
    }

    @Test(arguments: [
        ("place GEOWITHIN geoBox([9.0, 49.0], [11.0, 51.0])", "1"), ("place GEOWITHIN geoBox([170.0, -30.0], [-160.0, 0.0])", "2"),
        ("place GEOWITHIN geoCircle([10.0, 50.0], 0.0)", "1"), ("place GEOWITHIN geoCircle([10.0, 51.0], 0.0175)", "1"),
        ("place GEOWITHIN geoCircle([10.0, 51.0], 0.0174)", ""), ("place GEOWITHIN geoCircle([10, 50, 5.0], 3.15)", "1 2"),
        ("place GEOWITHIN geoPolygon({[9.0, 49.0], [11.0, 49.0], [11.0, 51.0], [9.0, 51.0], [9.0, 49.0]})", "1"),
        ("place GEOWITHIN geoPolygon({[9.0, 49.0], [9.0, 51.0], [11.0, 51.0], [11.0, 49.0], [9.0, 49.0]})", "1"),
        (
            "place GEOWITHIN geoPolygon({[0.0, 40.0], [20.0, 40.0], [10.0, 60.0], [0.0, 40.0]}, {[9.0, 49.0], [11.0, 49.0], [10.0, 51.0], [9.0, 49.0]})",
            ""
        ),
        // A great circle between two places on a parallel runs nearer to the pole.
        ("place GEOWITHIN geoPolygon({[-30.0, 49.0], [50.0, 49.0], [10.0, 10.0], [-30.0, 49.0]})", "1"),
        ("place GEOWITHIN geoPolygon({[160.0, -30.0], [-150.0, -30.0], [-170.0, 10.0], [160.0, -30.0]})", "2"),
        ("NOT place GEOWITHIN geoBox([-180.0, -90.0], [180.0, 90.0])", "3 4"), ("stops GEOWITHIN geoBox([-1.0, -1.0], [1.0, 1.0])", "1"),
        ("ALL stops GEOWITHIN geoBox([-1.0, -1.0], [1.0, 1.0])", "2 3 4"),
        ("NONE stops GEOWITHIN geoBox([-1.0, -1.0], [1.0, 1.0])", "2 3 4"),
    ])
    func `places lie in boxes, circles and polygons of the sphere`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text) == expected)
    }

    @Test
    func `shapes come as arguments`() throws {
        let box = "geoBox([9.0, 49.0], [11.0, 51.0])"
        let syntax = try Query.parse("place GEOWITHIN \(box)").tree.root
        guard case .compare(let comparison) = syntax.kind, case .shape(let shape) = comparison.right.kind else {
            Issue.record("no shape")
            return
        }
        #expect(try Library.run("place GEOWITHIN $0", [.shape(shape)]) == "1")
        #expect(try Library.run("place GEOWITHIN $0", [.value(.string(box))]) == "1")
        #expect(
            try Library.run("place GEOWITHIN geoCircle([$0, $1], $2)", [.value(.int(10)), .value(.double(50)), .value(.float(0.5))]) == "1")
        #expect(Library.failure("place GEOWITHIN $0", [.value(.int(1))])?.code == .queryArgument)
        #expect(Library.failure("place GEOWITHIN geoCircle([$0, 1], 1)", [.value(.string("x"))])?.code == .queryArgument)
    }

    @Test(arguments: [
        ("about TEXT 'books'", "1 2"), ("about TEXT 'BOOKS old'", "1"), ("about TEXT 'cafe'", "1"), ("about TEXT 'CAFÉ 42'", "1"),
        ("about TEXT 'boo*'", "1 2"), ("about TEXT 'books -old'", "2"), ("about TEXT '-toys'", "2"), ("about TEXT 'book'", ""),
        ("about TEXT 'toys no'", "1"), ("ANY tags TEXT 'e'", "1"), ("NOT about TEXT 'books'", "3 4"),
    ])
    func `TEXT looks for words`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text) == expected)
    }

    @Test(arguments: [
        ("TRUEPREDICATE SORT(name ASC)", "3 4 1 2"), ("TRUEPREDICATE SORT(name DESC)", "2 1 4 3"),
        ("TRUEPREDICATE SORT(owner.age DESC, _id DESC)", "1 4 3 2"),
        ("TRUEPREDICATE SORT(_id DESC) SORT(owner.age ASC)", "4 3 2 1"), ("TRUEPREDICATE SORT(owner.age ASC) SORT(_id DESC)", "4 3 2 1"),
        ("TRUEPREDICATE LIMIT(2)", "1 2"), ("TRUEPREDICATE SORT(_id DESC) LIMIT(2) SORT(_id ASC)", "3 4"), ("TRUEPREDICATE LIMIT(0)", ""),
        ("TRUEPREDICATE DISTINCT(owner.age)", "1 2"), ("TRUEPREDICATE SORT(_id DESC) DISTINCT(owner.age)", "4 1"),
        ("TRUEPREDICATE DISTINCT(owner.age, name)", "1 2 3 4"), ("TRUEPREDICATE SORT(mix ASC)", "4 3 1 2"),
        ("_id > 1 SORT(stock['a'] ASC, _id DESC)", "4 3 2"),
        ("TRUEPREDICATE DISTINCT(stock.a) LIMIT(1)", "1"), ("TRUEPREDICATE SORT(place.city DESC, _id ASC)", "1 2 3 4"),
    ])
    func `suffixes apply in the order written, stable, null first`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text) == expected)
    }

    @Test
    func `what reads one row is a predicate too, and the rest is none`() throws {
        for text in ["_id == 1 AND name == 'x'", "ANY tags == 'old' OR codes.@count > 1", "owner == obj('Person', 1)", "mix == 5"] {
            let query = try Library.bind(text)
            #expect(query.predicate != nil, "\(text)")
            #expect(query.compile().program != nil, "\(text)")
        }
        for text in [
            "owner.name == 'x'", "codes == {1, 2}", "_id + 1 == 2", "_id == 1 AND books.@count > 0 AND owner.age == 1", "place.city == 'x'",
        ] {
            #expect(try Library.bind(text).predicate == nil, "\(text)")
        }
    }
}
