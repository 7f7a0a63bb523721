import SluiceCore
import SluiceQuery
import SluiceValues
import TestSupport
import Testing

/// Every error that names and types of the whole language can be, and which arguments meet which types.
struct TypingTests {
    @Test(arguments: [
        ("owner.nmae == 'x'", "'Person' has no property 'nmae'", ErrorCode.queryUnknownProperty),
        ("place.x == 1", "'Place' has no property 'x'", .queryUnknownProperty),
        ("SUBQUERY(books, $b, $b.x == 1).@count > 0", "'Book' has no property 'x'", .queryUnknownProperty),
        ("SUBQUERY(books, $b, $c.pages == 1).@count > 0", "'Book' has no property '$c'", .queryUnknownProperty),
        ("books.@min.x == 1", "'Book' has no property 'x'", .queryUnknownProperty),
        ("@links.Nobody.x == 1", "There is no class 'Nobody'", .queryUnknownProperty),
        ("@links.Person.x == 1", "'Person' has no property 'x'", .queryUnknownProperty),
        ("owner == obj('Nobody', 1)", "There is no class 'Nobody'", .queryUnknownProperty),
        ("@links.Person.boss == null", "No property 'boss' found in type 'Person' which links to type 'Shop'", .queryTypeMismatch),
        ("@links.Person == null", "@links is followed by a class and a property", .queryTypeMismatch),
        ("@links.Place.keeper.city == 'x'", "which links to type 'Shop'", .queryTypeMismatch),
        ("owner.@links.Place.keeper.city == 'x'", "@links of the embedded type 'Place'", .queryUnsupported),
        ("_id == 'x'", "Unsupported comparison between type 'int' of '_id' and type 'string'", .queryTypeMismatch),
        ("name == _id", "Unsupported comparison between type 'string' of 'name' and type 'int' of '_id'", .queryTypeMismatch),
        (
            "books.price == name", "Unsupported comparison between type 'double' of 'books.price' and type 'string' of 'name'",
            .queryTypeMismatch
        ),
        ("owner == books.author.boss.age", "Unsupported comparison between type 'link'", .queryTypeMismatch),
        ("owner < owner", "Unsupported comparison between type 'link'", .queryTypeMismatch),
        ("place == place", "type 'object'", .queryTypeMismatch),
        ("place == 1", "type 'object' of 'place' and type 'int'", .queryTypeMismatch),
        ("1 == 1", "Cannot compare two constants", .queryTypeMismatch), ("1 + 1 == 2", "Cannot compare two constants", .queryTypeMismatch),
        ("{1} == {1}", "Cannot compare two constants", .queryTypeMismatch),
        ("1 BETWEEN {1, 2}", "Cannot compare two constants", .queryTypeMismatch),
        (
            "prices == more\\ prices", "Two lists of values cannot be compared as wholes. Put ANY, ALL or NONE before 'prices'",
            .queryTypeMismatch
        ),
        ("prices < codes", "Two lists of values cannot be compared as wholes", .queryTypeMismatch),
        ("books == null", "Cannot compare linklist ('books') with NULL", .queryTypeMismatch),
        ("ANY books != null", "Cannot compare linklist ('ANY books') with NULL", .queryTypeMismatch),
        ("books.author == null", "Cannot compare linklist ('books.author') with NULL", .queryTypeMismatch),
        (
            "owner == obj('Book', 'a')",
            "The relationship 'owner' which links to type 'Person' cannot be compared to an argument of type 'Book'", .queryTypeMismatch
        ),
        (
            "books == obj('Person', 1)",
            "The relationship 'books' which links to type 'Book' cannot be compared to an argument of type 'Person'", .queryTypeMismatch
        ),
        ("_id IN 5", "The keypath following 'IN' must contain a list. Found '5'", .queryTypeMismatch),
        ("_id IN owner.age", "The keypath following 'IN' must contain a list. Found 'owner.age'", .queryTypeMismatch),
        ("3 IN _id", "The keypath following 'IN' must contain a list. Found '_id'", .queryTypeMismatch),
        ("ANY owner.age == 1", "The keypath following 'ANY' must contain a list. Found 'owner.age'", .queryTypeMismatch),
        ("ALL name == 'x'", "The keypath following 'ALL' must contain a list. Found 'name'", .queryTypeMismatch),
        ("NONE place GEOWITHIN geoCircle([0, 0], 1)", "The keypath following 'NONE' must contain a list", .queryTypeMismatch),
        ("_id BETWEEN {1}", "exactly two values", .queryTypeMismatch), ("_id BETWEEN {1, 2, 3}", "exactly two values", .queryTypeMismatch),
        ("books.price BETWEEN {1, 2}", "Only 'ALL' supported for operator 'BETWEEN' when applied to lists.", .queryTypeMismatch),
        ("ANY prices BETWEEN {1, 2}", "Only 'ALL' supported", .queryTypeMismatch),
        (
            "name CONTAINS 5", "Unsupported comparison operator 'contains' against type 'int', right side must be a string or binary type",
            .queryTypeMismatch
        ),
        ("_id CONTAINS 'x'", "Unsupported comparison operator 'contains' against type 'int'", .queryTypeMismatch),
        ("name LIKE _id", "Unsupported comparison operator 'like' against type 'int'", .queryTypeMismatch),
        ("_id == inf", "Infinity not supported for int", .queryTypeMismatch),
        ("books.pages < nan", "NaN not supported for int", .queryTypeMismatch),
        ("name + 1 == 2", "Cannot perform '+' operation on 'string' and 'int'", .queryTypeMismatch),
        ("_id * owner == 2", "Cannot perform '*' operation on 'int' and 'link'", .queryTypeMismatch),
        ("_id - {1} == 2", "Cannot perform '-' operation on 'int' and 'list'", .queryTypeMismatch),
        ("prices / codes == 2", "Cannot perform '/' operation on two lists", .queryTypeMismatch),
        ("name.@min == 1", "Operation '@min' cannot apply to 'name' because it is not a list", .queryTypeMismatch),
        ("owner.@min.age == 1", "Operation '@min' cannot apply to 'owner' because it is not a list", .queryTypeMismatch),
        ("books.@min == 1", "needs one of their properties behind it", .queryTypeMismatch),
        ("tags.@sum == 1", "Operation '@sum' is not supported on 'tags' of type 'string'", .queryTypeMismatch),
        ("books.@sum.out == 1", "Operation '@sum' is not supported on 'books.out' of type 'date'", .queryTypeMismatch),
        ("books.@avg.out == 1", "Operation '@avg' is not supported on 'books.out' of type 'date'", .queryTypeMismatch),
        ("books.@min._id == 'a'", "Operation '@min' is not supported on 'books._id' of type 'string'", .queryTypeMismatch),
        ("books.@max.marks == 1", "Operation '@max' is not supported on 'books.marks' of type 'list'", .queryTypeMismatch),
        ("NONE books.@count == 1", "'NONE' needs several values, and 'books.@count' is one number", .queryTypeMismatch),
        ("1 < NONE prices.@size", "'NONE' needs several values", .queryTypeMismatch),
        ("_id.@count == 1", "Operation '@count' is not supported on '_id' of type 'int'", .queryTypeMismatch),
        (
            "SUBQUERY(prices, $x, TRUEPREDICATE).@count > 0",
            "A subquery must operate on a list property or backlinks, but 'prices' is none", .queryTypeMismatch
        ),
        ("SUBQUERY(owner, $x, TRUEPREDICATE).@count > 0", "A subquery must operate on a list", .queryTypeMismatch),
        (
            "SUBQUERY(books, $x, SUBQUERY(author.@links.Shop.owner, $x, TRUEPREDICATE).@count > 0).@count > 0",
            "identical variable already exists", .queryTypeMismatch
        ),
        ("mix.@type == 'strange'", "Unable to parse the type attribute string 'strange'", .queryTypeMismatch),
        ("mix.@type == 5", "Unsupported comparison between @type and raw value: '@type' and 'int'", .queryTypeMismatch),
        ("mix.@type < 'int'", "on @type, only ==, != and IN are", .queryTypeMismatch),
        ("mix.@type == name", "type '@type'", .queryTypeMismatch),
        ("mix.@type CONTAINS 'i'", "on @type, only ==, != and IN are", .queryTypeMismatch),
        ("_id[0] == 1", "Only Property of type 'any' can have nested collections", .queryTypeMismatch),
        ("prices[0][0] == 1", "Only Property of type 'any' can have nested collections", .queryTypeMismatch),
        ("stock['a']['b'] == 1", "Only Property of type 'any' can have nested collections", .queryTypeMismatch),
        ("codes[0] == 1", "Only Property of type 'any' can have nested collections", .queryTypeMismatch),
        ("name.x == 1", "Only Property of type 'any' can have nested collections", .queryTypeMismatch),
        ("tags.x == 1", "Only Property of type 'any' can have nested collections", .queryTypeMismatch),
        ("prices['x'] == 1", "Only Property of type 'any' can have nested collections", .queryTypeMismatch),
        ("stock[0] == 1", "Only Property of type 'any' can have nested collections", .queryTypeMismatch),
        ("prices.@keys == 'a'", "Only Property of type 'any' can have nested collections", .queryTypeMismatch),
        ("owner GEOWITHIN geoCircle([0, 0], 1)", "in the wrong format for GEOWITHIN", .queryTypeMismatch),
        ("name GEOWITHIN geoCircle([0, 0], 1)", "in the wrong format for GEOWITHIN", .queryTypeMismatch),
        ("place GEOWITHIN geoCircle([0, 0], -1.0)", "The radius of a circle must be a non-negative number", .queryShape),
        ("place GEOWITHIN geoCircle([181, 0], 1)", "Longitude/latitude is out of bounds, lng: 181.0 lat: 0.0", .queryShape),
        ("place GEOWITHIN geoBox([0, 0], [1, 90.5])", "Longitude/latitude is out of bounds", .queryShape),
        ("place GEOWITHIN geoBox([0, 10], [1, 0])", "south-western", .queryShape),
        (
            "place GEOWITHIN geoPolygon({[0, 0], [1, 0], [1, 1], [0, 1]})",
            "Ring is not closed, first vertex '[0.0, 0.0]' does not equal last vertex '[0.0, 1.0]'", .queryShape
        ),
        ("place GEOWITHIN geoPolygon({[0, 0], [1, 0], [0, 0]})", "at least 3 distinct", .queryShape),
        (
            "place GEOWITHIN geoPolygon({[0, 0], [4, 0], [4, 4], [0, 0]}, {[8, 8], [9, 8], [9, 9], [8, 8]})",
            "Secondary ring 1 not contained by first exterior ring", .queryShape
        ),
        ("about TEXT '!'", "Missing search token", .queryTypeMismatch),
        ("_id TEXT 'x'", "TEXT searches a string property", .queryTypeMismatch),
        ("about TEXT 5", "TEXT takes the words to search as a string", .queryTypeMismatch),
        ("TRUEPREDICATE SORT(books.price ASC)", "Cannot sort on 'books.price'", .queryTypeMismatch),
        ("TRUEPREDICATE SORT(owner ASC)", "Cannot sort on 'owner'", .queryTypeMismatch),
        ("TRUEPREDICATE DISTINCT(tags)", "Cannot distinct on 'tags'", .queryTypeMismatch),
        ("TRUEPREDICATE SORT(nothing ASC)", "'Shop' has no property 'nothing'", .queryUnknownProperty),
    ])
    func `what cannot be bound is named with its place`(_ text: String, _ reason: String, _ code: ErrorCode) throws {
        let error = try #require(Library.failure(text))
        #expect(error.message.contains(reason), "\(text): \(error)")
        #expect(error.code == code, "\(text): \(error)")
        #expect(error.message.hasPrefix("line 1, column "), "\(error)")
    }

    @Test(
        arguments: [
            ("_id == $0", [], "Request for argument at index 0 but no arguments are provided"),
            ("_id == $1", [.int(1)], "Request for argument at index 1 but only 1 argument is provided"),
            ("_id == $2", [.int(1), .int(2)], "Request for argument at index 2 but only 2 arguments are provided"),
            ("$K0 == 1", [], "Request for argument at index 0 but no arguments are provided"),
            ("$K0 == 1", [.int(1)], "takes the path of a property"),
            ("stock[$0] == 1", [.bool(true)], "is no key and no index"),
            ("_id == ANY $0", [.int(1)], "ANY/ALL/NONE are only allowed on arguments which contain a list"),
            ("owner.age == $0", [.string("5")], "Cannot compare argument $0 with value 'string(\"5\")' to a int"),
        ] as [(String, [Value], String)])
    func `arguments that are missing or do not fit are named`(_ text: String, _ arguments: [Value], _ reason: String) throws {
        let error = try #require(Library.failure(text, arguments.map { .value($0) }))
        #expect(error.message.contains(reason), "\(error)")
    }

    @Test
    func `a path given as an argument stands alone`() throws {
        #expect(try Library.run("$K0 == 'Ann'", [.value(.string("owner.name"))]) == "1")
        #expect(try Library.run("ANY $K0 == 4", [.value(.string("books.price"))]) == "1 2")
        #expect(try Library.run("$K0 == 3", [.value(.string("books.@count"))]) == "2")
        #expect(try Library.run("$K0 == 'North'", [.value(.string("@links.Shop.books.name"))], type: "Book") == "a b")
        #expect(try Library.run("stock[$0] == 3 AND prices[$1] == 4", [.value(.string("a")), .value(.int(1))]) == "1")
        let mixed = try #require(Library.failure("$K0.name == 'Ann'", [.value(.string("owner"))]))
        #expect(mixed.message.contains("cannot be mixed with other elements"))
    }

    /// For each type what it can be compared with as an argument; everything else is refused.
    @Test
    func `an argument is compared with its own type, numbers with numbers, and everything with mixed`() throws {
        let values: [(name: String, value: Value)] = [
            ("bool", .bool(true)), ("int", .int(1)), ("double", .double(1)), ("float", .float(1)), ("decimal", .decimal(Decimal128(1))),
            ("string", .string("x")), ("binary", .binary([1])), ("date", .timestamp(Timestamp(seconds: 1))),
            ("objectId", .objectId(Samples.ids[0])), ("uuid", .uuid(Samples.uuids[0])),
            ("link", .link(type: "Sample", key: .objectId(Samples.ids[0]))),
            ("null", .null),
        ]
        let numbers: Set = ["int", "double", "float", "decimal"]
        let columns = [
            ("flag", "bool"), ("number", "int"), ("ratio", "double"), ("small", "float"), ("price", "decimal"), ("name", "string"),
            ("data", "binary"),
            ("at", "date"), ("_id", "objectId"), ("owner", "uuid"), ("friend", "link"), ("blend", "mixed"), ("tags", "string"),
            ("scores", "int"),
        ]
        for (column, type) in columns {
            for (name, value) in values {
                let isAllowed = type == name || name == "null" || type == "mixed" || (numbers.contains(type) && numbers.contains(name))
                for (text, arguments) in [("\(column) == $0", value), ("$0 != \(column)", value), ("\(column) IN $0", Value.list([value]))]
                {
                    let error = failure(text, arguments)
                    #expect((error == nil) == isAllowed, "\(text) with \(value): \(String(describing: error))")
                    if let error { #expect(error.message.contains("Cannot compare argument $0 with value '"), "\(error)") }
                }
                guard type != "link" else { continue }
                let error = failure("\(column) < $0", value)
                #expect((error == nil) == (isAllowed && name != "link"), "\(column) < \(value): \(String(describing: error))")
            }
        }
    }

    private func failure(_ text: String, _ argument: Value) -> SluiceError? {
        do throws(SluiceError) {
            let schema = Samples.schema
            _ = try Query.parse(text).bind(to: Samples.type, in: schema, arguments: [.value(argument)])
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        ("owner.age == '30'", "1"), ("owner.age == '30.0'", "1"), ("books.price == '5.5'", "1"), ("books.exact == '1.10'", "1"),
        ("books.weight == 0.1", "2"), ("books.weight == 0.1f", "2"), ("books.exact == 0.1", "2"), ("books.price == 4", "1 2"),
        ("owner.age == 30.0", "1"),
        ("owner.age > 29.5", "1"), ("owner.age == 29.5", ""),
    ])
    func `constants adapt to what they are compared with`(_ text: String, _ expected: String) throws {
        #expect(try Library.run(text) == expected)
    }

    @Test
    func `aliases stand for names and paths, and loops of them end`() throws {
        let aliases = QueryAliases(
            properties: [
                "Shop": ["title": "name", "chef": "owner", "loop": "pool", "pool": "loop", "name": "about"],
                "Book": ["shops": "@links.Shop.books"], "Person": ["years": "age"],
            ], classes: ["Human": "Person"])
        func run(_ text: String, type: String = "Shop") throws -> Int {
            let query = try Query.parse(text).bind(to: try #require(Library.schema[type]), in: Library.schema, aliases: aliases)
            return query.run(over: Library.graph).count
        }
        #expect(try run("chef.years == 30") == 1)
        #expect(try run("ANY shops.name == 'new BOOKS'", type: "Book") == 2)
        #expect(try run("shops.@count == 3", type: "Book") == 1)
        // An alias goes before a property of the name, and may lead to another.
        #expect(try run("name == 'new BOOKS'") == 1)
        #expect(try run("title == 'new BOOKS'") == 1)
        #expect(try run("owner == obj('Human', 1)") == 1)
        let error = #expect(throws: SluiceError.self) { try run("loop == 1") }
        #expect(error?.message.contains("Substitution loop detected while processing 'loop' -> 'pool' found in type 'Shop'") == true)
    }

    @Test
    func `the canonical text has the arguments in it and binds back`() throws {
        let arguments: [QueryArgument] = [
            .value(.int(3)), .value(.list([.string("a"), .null])), .value(.string("owner.name")),
            .value(.link(type: "Person", key: .int(1))),
        ]
        let text = "_id < $0 AND ANY tags IN $1 AND $K2 == 'x' OR owner == $3 OR stock[$0] == 1 SORT($K2 ASC) LIMIT(2)"
        let error = Library.failure(text, arguments)
        #expect(error?.message.contains("nested collections") == true)
        let good = try Library.bind(text.replacingLast("stock[$0]", "books[$0].pages"), arguments)
        #expect(
            good.canonicalText
                == "(_id < 3 and ANY tags IN {\"a\", NULL} and owner.name == \"x\") or owner == obj(\"Person\", 1) or books[3].pages == 1 "
                + "SORT(owner.name ASC) LIMIT(2)")
        let again = try Library.bind(good.canonicalText)
        #expect(again == good)
    }
}

extension String {
    /// Without Foundation.
    fileprivate func replacingLast(_ part: String, _ other: String) -> String {
        guard let range = ranges(of: part).last else { return self }
        return replacingCharacters(in: range, with: other)
    }

    private func replacingCharacters(in range: Range<Index>, with other: String) -> String {
        self[..<range.lowerBound] + other + self[range.upperBound...]
    }
}
